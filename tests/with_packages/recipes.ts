/** The programs in the library's README, run as they stand there, with the real frameworks. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { gzipSync } from "node:zlib";
import { Daemon, nginx } from "../support/daemon.ts";
import { fromRoot } from "../support/paths.ts";
import { installTarball, NPM } from "../support/npm.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";

const test = needing(...NPM);
const OLD = '"/v1/songs"';
const CACHED = '"Cache-Control", "max-age=864000"';

/** A folder with the library and the frameworks, as users install them. */
const installed = shared(NPM, async () => {
  const frameworks = ["@hono/node-server@2.1.8", "express@5.3.0", "hono@4.13.19"];
  const { folder } = await installTarball(frameworks);
  return { folder, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
});

/** What is added to the recipes that are no whole programs. */
const REST: Record<string, string> = {
  "hono": `import { serve } from "@hono/node-server";
    app.get(${OLD}, (context) => context.text("old", 200, Object.fromEntries([[${CACHED}]])));
    serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: "127.0.0.1" });`,
  "express": `app.get(${OLD}, (_, response) =>
      response.set("Link", '</a>; rel="next"').writeHead(200, Object.fromEntries([[${CACHED}]])).end("old"));
    app.listen(Number(process.env.PORT), "127.0.0.1");`,
};

/** Returns the program in README that imports a module first, and the policy. */
function recipe(name: string): { program: string; policy: string } {
  const readme = Deno.readTextFileSync(fromRoot("lib/lifecycle/README.md"));
  const blocks = [...readme.matchAll(/```js ignore\n([^]*?)```/g)].map(([, block = ""]) => block);
  const [program] = blocks.filter((block) => /from "(.*)"/.exec(block)?.[1] === name);
  const [policy] = blocks.filter((block) => block.includes("export const policy"));
  assert(program && policy, name);
  return { program: program + (REST[name] ?? ""), policy };
}

/** A recipe that runs, with a clock that can be set. Disposing of it ends it. */
async function start(name: string, UPSTREAM = "") {
  const folder = await Deno.makeTempDir({ dir: installed().folder });
  const { program, policy } = recipe(name);
  const setClock = (now: string) => Deno.writeTextFile(`${folder}/now`, String(Date.parse(now)));
  await setClock("2026-12-01T00:00:00Z");
  await Deno.writeTextFile(`${folder}/main.mjs`, program);
  const clock = `import { readFileSync } from "node:fs";
    Date.now = () => Number(readFileSync("${folder}/now"));\n`;
  await Deno.writeTextFile(`${folder}/policy.mjs`, clock + policy);
  const port = freePort();
  const child = new Deno.Command("node", {
    args: [`${folder}/main.mjs`],
    env: { PORT: String(port), UPSTREAM },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const outputs = Promise.all(
    [child.stdout, child.stderr].map((text) => new Response(text).text()),
  );
  let hasEnded = false;
  child.status.then(() => hasEnded = true);
  while (!hasEnded && !await accepts(port)) await new Promise((resolve) => setTimeout(resolve, 20));
  if (hasEnded) throw new Error((await outputs).join("\n"));
  return {
    url: `http://127.0.0.1:${port}/v1/songs`,
    setClock,
    async stop() {
      child.kill();
      const [stdout = ""] = await outputs;
      await Deno.remove(folder, { recursive: true });
      return stdout;
    },
  };
}

/** Each phase: an instant, the status, and Cache-Control. */
const PHASES: [now: string, status: number, cacheControl: RegExp][] = [
  ["2026-11-20T23:59:00Z", 200, /^max-age=59, must-revalidate/],
  ["2026-12-01T00:00:00Z", 200, /^max-age=864000, must-revalidate/],
  ["2027-05-03T08:59:00Z", 200, /^max-age=59, must-revalidate/],
  ["2027-05-03T09:30:00Z", 503, /^no-store$/],
  ["2027-06-30T00:00:00Z", 410, /^max-age=300$/],
];

/** Checks what a running recipe answers in each phase, HEAD and GET alike. */
async function checkPhases({ url, setClock }: Awaited<ReturnType<typeof start>>): Promise<void> {
  for (const [now, status, cacheControl] of PHASES) {
    await setClock(now);
    const [head, get] = await Promise.all(["HEAD", "GET"].map(async (method) => {
      const headers = { "Accept-Encoding": "identity", "User-Agent": "curl/8" };
      const response = await fetch(url, { method, headers, redirect: "manual" });
      return { response, text: await response.text() };
    })) as [{ response: Response; text: string }, { response: Response; text: string }];
    assertEquals([head.response.status, get.response.status], [status, status], now);
    assertEquals(head.text, "");
    assertMatch(get.text, status === 200 ? /^old$/ : new RegExp(`"status":${status},`));
    const [fields, others] = [head, get].map(({ response: { headers } }) => {
      assertEquals(headers.get("deprecation"), "@1795219200", now);
      assertEquals(headers.get("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT");
      assertMatch(headers.get("link") ?? "", /<\/v2\/songs>; rel="successor-version", <https:/);
      assertMatch(headers.get("cache-control") ?? "", cacheControl, now);
      const isOfMessage = /^(?:date|connection|keep-alive|transfer-encoding|vary)$/;
      return [...headers].filter(([name]) => !isOfMessage.test(name));
    });
    const isLength = ([name]: [string, string]) => name === "content-length";
    // A HEAD may omit it, but it must not be another.
    assertEquals(fields, fields?.some(isLength) ? others : others?.filter((one) => !isLength(one)));
  }
}

test("the recipe for Hono retires its routes, and no others", async () => {
  const running = await start("hono");
  await checkPhases(running).finally(running.stop);
});

test("the recipe for Express retires its routes", async () => {
  const running = await start("express");
  await checkPhases(running).finally(running.stop);
});

test("the recipe in front retires routes of an Express application, a HEAD as HEAD", async () => {
  const asked: string[] = [];
  // deno-lint-ignore no-import-prefix -- a start would download what the import map has
  const { default: express } = await import("npm:express@5.3.0"); // which reads the environment
  const app = express();
  app.use(
    (
      { method, url }: Request,
      response: {
        set: (...field: string[]) => typeof response;
        send: (content: Uint8Array) => void;
      },
    ) => {
      asked.push(`${method} ${url}`);
      response.set("Cache-Control", "max-age=864000").set("Connection", "close")
        .set("Content-Encoding", "gzip").send(gzipSync("old")); // though identity is asked for
    },
  );
  const port = freePort();
  const server = app.listen(port, "127.0.0.1");
  try {
    const running = await start("@hono/node-server", `http://127.0.0.1:${port}`);
    let log = "";
    try {
      await checkPhases(running);
      const other = await fetch(running.url.replace("v1", "v2"), { method: "HEAD" });
      assertEquals([other.status, other.headers.get("deprecation")], [200, null]);
    } finally {
      log = await running.stop();
    }
    assertEquals(asked.slice(0, 2).toSorted(), ["GET /v1/songs", "HEAD /v1/songs"]);
    assertEquals(asked.length, 2 * 3 + 1); // the others were refused
    const call = { phase: "removed", status: 410, client: "curl", breaks: true };
    assertEquals(JSON.parse(log.trim().split("\n").at(-1) ?? ""), call);
  } finally {
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }
});

needing(...NPM, program("nginx"))("the recipe in front retires routes of nginx", async () => {
  await using daemon = await Daemon.start("nginx", ({ port, folder }) =>
    nginx(
      folder,
      `access_log off; server { listen 127.0.0.1:${port};
        location / { add_header Cache-Control max-age=864000; return 200 old; } }`,
    ));
  const running = await start("@hono/node-server", `http://127.0.0.1:${daemon.port}`);
  await checkPhases(running).finally(running.stop);
});
