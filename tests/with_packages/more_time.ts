/** More time for one client, by README's programs with the tarball, through a cache, too. */

import { assertEquals, assertMatch } from "@std/assert";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import { needsOf, startCache } from "../support/caches.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { until, within } from "../support/within.ts";

/** A folder with the tarball and the frameworks. */
const installed = shared(NPM, async () => {
  const place = await installTarball();
  return { ...place, node: `${place.folder}/node_modules/node24/bin/node` };
});

const END = "9999-01-01T00:00:00Z";

/** The program's blocks: the whole of Express, and what follows the route in Fastify. */
function blocks(): [express: string, fastify: string] {
  const readme = Deno.readTextFileSync(fromRoot("lib/usage/applications.md"));
  const [, section = ""] = readme.split("\n## More time for one client\n");
  const found = section.split("\n## ")[0]?.matchAll(/```js ignore\n([^]*?)```/g) ?? [];
  const [express = "", fastify = "", ...others] = Array.from(found, ([, text = ""]) => text);
  assertEquals(others, []);
  return [express, fastify];
}

/** The program in each framework. */
const PROGRAMS: [name: string, program: () => string][] = [
  ["Express", () => blocks()[0]],
  ["Fastify", () => {
    const [express, fastify] = blocks();
    const [common = ""] = /^[^]*?^const acme = .*\n/m.exec(express) ?? [];
    return common.replace(/^import express .*\n/m, "") + fastify;
  }],
];

/** Returns a program with other dates, another record and another port. */
function adapt(program: string, settings: object, database: string, port: number): string {
  const replacements: [from: RegExp, to: string][] = [
    [/^const policy = \{$[^]*?^\};$/m, `const policy = ${JSON.stringify(settings)};`],
    [/(?<=sunsetAt: )"2027-12-31"/, `"${END}"`],
    [/sqlite:\.\/calls\.sqlite/, database],
    [/\b8000\b/, `${port}`],
  ];
  return replacements.reduce((text, [from, to]) => {
    assertMatch(text, from);
    return text.replace(from, to);
  }, program);
}

const AFTER = `
process.on("SIGTERM", () => usage.close().then(() => process.exit(0)));`;

const HOUR = 3_600_000;
const at = (ahead: number) => new Date(Math.floor(Date.now() / 1000) * 1000 + ahead * HOUR);

/** Phases for all others, and what they get. */
const PHASES: [phase: string, settings: object, status: number, sunset: Date][] = [
  ["before the sunset", { sunsetAt: at(99_999) }, 200, at(99_999)],
  [
    "in a brownout",
    { sunsetAt: at(99_999), brownouts: [{ start: at(-1), end: at(1) }] },
    503,
    at(99_999),
  ],
  ["after the sunset", { sunsetAt: at(-999) }, 410, at(-999)],
];

/** The order of keys and methods, with each request twice. */
const ORDERS = [["acme", "beta"], ["beta", "acme"]].flatMap((keys) =>
  [["GET", "HEAD"], ["HEAD", "GET"]].map((methods) =>
    methods.flatMap((method) => keys.flatMap((key) => [[key, method], [key, method]] as const))
  )
);

for (const [name, program] of PROGRAMS) {
  needing(...NPM, ...needsOf("nginx"))(
    `a client with a route of its own has more time in ${name}, through nginx, too`,
    async () => {
      const { folder, node } = installed();
      const port = freePort();
      await using cache = await startCache("nginx", port);
      const file = name.replaceAll(" ", "-").toLowerCase();
      const database = `sqlite:./${file}.sqlite`;
      const sent: Record<string, number> = {};
      for (const [phase, settings, refused, sunset] of PHASES) {
        const whole = { deprecatedAt: "2020-01-01", ...settings };
        const text = adapt(program(), whole, database, port);
        await Deno.writeTextFile(`${folder}/${file}.mjs`, text + AFTER);
        const args = ["--no-warnings", `${file}.mjs`];
        const output = { stdout: "null", stderr: "null" } as const;
        await using child = new Deno.Command(node, { args, cwd: folder, ...output }).spawn();
        await until(`${name} to listen`, () => accepts(port));
        const dates: Record<string, [status: number, sunset: Date | undefined]> = {
          acme: [200, new Date(END)],
          beta: [refused, sunset],
          nobody: [401, undefined],
        };
        const ask = async (to: number, key: string, method: string, query = "") => {
          const url = `http://127.0.0.1:${to}/v1/songs${query}`;
          const known = key === "nobody" ? {} : { "X-Api-Key": `key-of-${key}` };
          const headers = { "User-Agent": "acme/1.0", ...known };
          const response = await fetch(url, { method, headers });
          const content = await response.text();
          const [status, until] = dates[key] ?? [];
          const expected = until === undefined ? null : formatHttpDate(until.getTime());
          const note = `${phase}, ${key}, ${method}${query}`;
          assertEquals([response.status, response.headers.get("sunset")], [status, expected], note);
          if (status === 200) assertEquals(content, method === "GET" ? '["a song"]' : "");
          if (status !== 401) sent[key] = (sent[key] ?? 0) + 1;
          return response;
        };
        for (const key of ["acme", "beta", "nobody", "acme"]) {
          for (const method of ["GET", "HEAD"]) {
            const { status, headers } = await ask(port, key, method);
            if (status === 401) continue;
            const cached = headers.get("cache-control") ?? "";
            assertMatch(
              cached,
              status === 200 ? /^private, max-age=60, must-/ : /^no-store, no-transform, private$/,
            );
            assertEquals(headers.get("vary"), "X-Api-Key");
          }
        }
        for (const [index, order] of ORDERS.entries()) {
          for (const [key, method] of order) {
            await ask(cache.port, key, method, `?${phase.replaceAll(" ", "-")}-${index}`);
          }
        }
        child.kill("SIGTERM");
        assertEquals((await within("the end of the program", child.status)).code, 0, phase);
      }
      const command = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";
      const gate = ["usage", "--database", database, "--route", "/v1", "--gate", "1", "--json"];
      const { text, errors } = await run(folder, node, "--no-warnings", command, ...gate);
      const { clients, verdicts } = JSON.parse(text || errors);
      const counts = clients.map(({ client, routes, calls, phases }: Record<string, unknown>) => [
        client,
        (routes as string[]).join(),
        calls,
        Object.keys(phases as object).toSorted().join(),
      ]);
      assertEquals(counts.toSorted(), [
        ["id acme", "/v1 for acme", sent["acme"], "deprecated"],
        ["id beta", "/v1", sent["beta"], "brownout,deprecated,removed"],
      ]);
      assertEquals(
        verdicts.map(({ route, verdict }: Record<string, unknown>) => [route, verdict]),
        [["/v1", "called"], ["/v1 for acme", "called"]],
      );
    },
  );
}
