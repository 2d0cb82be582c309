/** The record of calls as applications keep it: from the tarball, as README shows. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { shellWord } from "../../lib/input/printable.ts";
import { DAY_MS } from "../../lib/http/timestamp.ts";
import { createCertificate } from "../support/certificate.ts";
import { copy } from "../support/copy.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until, within } from "../support/within.ts";

const COMMAND = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";

const PAGE = Deno.readTextFileSync(fromRoot("lib/usage/applications.md"));

/** Returns the first program of the page that has these words. */
const blockOf = (words: string) =>
  Array.from(PAGE.matchAll(/```js ignore\n([^]*?)```/g), ([, text = ""]) => text)
    .find((block) => block.includes(words)) ?? "";

/** A folder in which the tarball is installed. */
const installed = shared(NPM, async () => {
  const place = await installTarball();
  const nodeOf = (version: number) => `${place.folder}/node_modules/node${version}/bin/node`;
  return { ...place, node22: nodeOf(22), node24: nodeOf(24) };
});

const postgres = shared([...NPM, ...POSTGRES], () => PostgresServer.start());

/** Runs `lifecycle usage` on a record. */
function usage(database: string, words: readonly string[] = [], node = installed().node24) {
  return run(installed().folder, node, COMMAND, "usage", "--database", database, ...words);
}

/** An application's record. */
interface TestRecord {
  readonly database: string;
  /** Runs statements. */
  run(sql: string): Promise<unknown>;
  /** An expression for the day so many days before `day`. */
  dayBefore(days: number): string;
}

/** Moves a record into the past, or back. */
const age = ({ run, dayBefore }: TestRecord, days: number) =>
  run(
    `UPDATE media_head_usage SET day = ${dayBefore(days)};
    UPDATE media_head_session SET began = began - ${days * DAY_MS},
      reported = reported - ${days * DAY_MS}, written = written - ${days * DAY_MS};
    UPDATE media_head_day SET day = day - ${days}`,
  );

/** Lets running sessions have begun so many days ago. */
const begunBefore = (days: number) =>
  `UPDATE media_head_session SET began = began - ${days * DAY_MS} WHERE ended IS NULL`;

/** Lets the session of a process that was killed be silent for two minutes. */
const silenceOf = (pid: number) =>
  `UPDATE media_head_session SET reported = reported - 120000, written = written - 120000,
    began = began - 120000 WHERE pid = ${pid}`;

function sqliteRecord(name: string): Promise<TestRecord> {
  const path = `${installed().folder}/${name}.sqlite`;
  return Promise.resolve({
    database: `sqlite:${path}`,
    run(sql) {
      using database = new DatabaseSync(path, { timeout: 5_000 });
      return Promise.resolve(database.exec(sql));
    },
    dayBefore: (days) => `date(day, '${-days} days')`,
  });
}

async function postgresRecord(): Promise<TestRecord> {
  const name = await postgres().createDatabase();
  return {
    database: postgres().urlOf(name),
    run: (sql) => postgres().query(sql, name),
    dayBefore: (days) => `to_char(day::date - ${days}, 'YYYY-MM-DD')`,
  };
}

/** Starts a program that listens on `PORT`, and returns what ends it and the exit status. */
async function serve(node: string, file: string) {
  const port = freePort();
  const options = { args: [file], cwd: installed().folder, env: { PORT: String(port) } };
  const child = new Deno.Command(node, { ...options, stderr: "null" }).spawn();
  await until(`${file} to listen`, () => accepts(port));
  const end = async (signal: Deno.Signal) => {
    child.kill(signal);
    return (await within("the end of the program", child.status)).code;
  };
  return { port, pid: child.pid, end };
}

/** Calls the old path on new connections until none is accepted. */
async function callUntilClosed(port: number, onAnswer: () => void): Promise<void> {
  for (;;) {
    const response = await requestRaw(port, "GET", "/v1/songs", { "User-Agent": "curl/8" })
      .catch(() => undefined);
    if (response === undefined) return;
    assertEquals([response.status, field(response, "deprecation")], [200, "@1795219200"]);
    onAnswer();
  }
}

/** The program for Express of the README, on a database. */
const expressProgram = (database: string) =>
  blockOf("express()").replace("sqlite:./calls.sqlite", database);

const SCENES: [name: string, node: "node22" | "node24", open: () => Promise<TestRecord>][] = [
  ["SQLite, Node 22 and CommonJS", "node22", () => sqliteRecord("commonjs")],
  ["PostgreSQL and Node 24", "node24", postgresRecord],
];

for (const [name, version, open] of SCENES) {
  needing(...NPM, ...POSTGRES)(
    `an application's gate counts every call, and names what is not on record, with ${name}`,
    async () => {
      const { folder, [version]: node } = installed();
      const record = await open();
      const program = expressProgram(record.database);
      const file = version === "node22" ? "server.cjs" : "server.mjs";
      const required = program
        .replaceAll(/^import (.*) from ("[@\w/-]+");$/gm, "const $1 = require($2);");
      const source = version === "node22" ? `(async () => {\n${required}})();` : program;
      await Deno.writeTextFile(`${folder}/${file}`, source);
      const ask = (...words: string[]) => usage(record.database, ["--gate", ...words], node);

      const processes = [await serve(node, file), await serve(node, file)];
      let answered = 0;
      const calls = processes.map(({ port }) => callUntilClosed(port, () => answered++));
      for (const [index, { end }] of processes.entries()) {
        await until("some calls", () => answered >= 10 * (index + 1));
        assertEquals(await end(index === 0 ? "SIGINT" : "SIGTERM"), 0);
      }
      await Promise.all(calls);
      const called = await ask("30");
      assertEquals(called.code, 1, called.errors);
      const calledText = `Still called: ${
        answered.toLocaleString("en-US")
      } calls to /v1 by 1 client`;
      assert(called.text.startsWith(calledText), `${called.text}\n${calledText}`);

      const killed = await serve(node, file);
      await killed.end("SIGKILL");
      await record.run(silenceOf(killed.pid));
      await age(record, 40);
      /** Asks the gate for its exit status, and the causes of an unknown verdict. */
      const judge = async () => {
        const { code, text, errors } = await ask("30", "--json");
        const { verdicts, gaps } = JSON.parse(text || errors);
        return {
          code,
          causes: verdicts[0].causes.map(({ cause }: { cause: string }) => cause),
          gaps: gaps.map(({ kind, process }: { kind: string; process?: { pid: number } }) => [
            kind,
            process?.pid,
          ]),
        };
      };
      const left = await judge();
      assertEquals([left.code, left.causes.includes("no process")], [3, true]);

      // One that has run all the time knows that nobody called, but not what the other did.
      const last = await serve(node, file);
      await record.run(begunBefore(40));
      assertEquals(await judge(), { code: 4, causes: [], gaps: [["silent", killed.pid]] });
      const clear = await ask("30");
      assertEquals(clear.code, 4, clear.text);
      assertMatch(clear.text, RegExp(`^Not on record: .* process ${killed.pid}[ ,]`, "m"));
      assertEquals(await last.end("SIGTERM"), 0);
      const stopped = await judge();
      assertEquals([stopped.code, stopped.causes], [3, ["no process"]]);
      await age(record, -3);
      assert((await judge()).causes.includes("clock behind"));

      const [, block = ""] = /```sh\n(npx --no lifecycle hold [^]*?)```/.exec(PAGE) ?? [];
      const month = new Date(Date.now() + 30 * DAY_MS).toISOString().slice(0, 10);
      const command = [node, COMMAND].map(shellWord).join(" ");
      const line = block.replace(/\d{4}-\d\d-\d\d/, month)
        .replace("npx --no lifecycle", () => command)
        .replace("sqlite:./calls.sqlite", () => shellWord(record.database));
      const hold = async (more = "") => await run(folder, "sh", "-c", line.trimEnd() + more);
      const held = await hold();
      assertMatch(held.text, /^Held until \S+T00:00:00Z \(billing is down\): \/v1\n/, held.errors);
      const wrong = await hold(" --release");
      assertMatch(wrong.errors, /'--release' .* '--until/);
      assertEquals([held.code, wrong.code], [0, 2]);
    },
  );
}

/** Milliseconds after which a signal is delivered again. */
const AGAIN_AFTER = [3, 50, 300];

needing(...NPM)("a signal that is delivered twice cuts nobody off, and loses no call", async () => {
  const { folder, node24 } = installed();
  const database = "sqlite:./signals.sqlite";
  const program = expressProgram(database).replace(
    'response.json(["a song"])',
    'setTimeout(() => response.json(["a song"]), 600)',
  );
  await Deno.writeTextFile(`${folder}/signals.mjs`, program);
  for (const again of AGAIN_AFTER) {
    const { port, end } = await serve(node24, "signals.mjs");
    const call = requestRaw(port, "GET", "/v1/songs");
    await new Promise((resolve) => setTimeout(resolve, 100)); // the call is under way
    const first = end("SIGTERM");
    await new Promise((resolve) => setTimeout(resolve, again));
    const second = end("SIGTERM");
    const what = `again after ${again} ms`;
    const { status, content } = await call;
    assertEquals([status, new TextDecoder().decode(content)], [200, '["a song"]'], what);
    assertEquals(await Promise.all([first, second]), [0, 0], what);
  }
  const { clients } = JSON.parse((await usage(database, ["--json"])).text);
  assertEquals(clients.map(({ calls }: { calls: number }) => calls), [AGAIN_AFTER.length]);
  using file = new DatabaseSync(`${folder}/signals.sqlite`);
  const ends = file.prepare(
    "SELECT ended, count(*) AS sessions FROM media_head_session GROUP BY 1",
  );
  const all = ends.all().map((row) => ({ ...row }));
  assertEquals(all, [{ ended: "stopped", sessions: AGAIN_AFTER.length }]);
});

/** Milliseconds for which a client goes on calling while the ledger is away. */
const AWAY_MS = 3_000;

needing(...NPM, ...POSTGRES)(
  "on Node, with its four threads, every path is answered while the ledger hangs or is locked",
  async () => {
    const { folder, node24 } = installed();
    const server = postgres();
    const locked = `${folder}/locked.sqlite`;
    const rows: [database: string, away: () => () => unknown][] = [
      [server.urlOf(await server.createDatabase()), () => {
        server.freeze();
        return () => server.thaw();
      }],
      [`sqlite:${locked}`, () => {
        const file = new DatabaseSync(locked, { timeout: 5_000 });
        file.exec("BEGIN IMMEDIATE");
        return () => file.close();
      }],
    ];
    await sideBySide(rows, async ([database, away]) => {
      const program = expressProgram(database).replace( // each file is read by a thread
        "app.get(",
        'app.get("/file", (_, response) => response.sendFile(import.meta.filename));\napp.get(',
      );
      const file = `threads-${database.split(":")[0]}.mjs`;
      await Deno.writeTextFile(`${folder}/${file}`, program);
      const { port, end } = await serve(node24, file);
      let calls = 0;
      const callAll = async () => {
        for (const path of ["/v1/songs", "/v2/songs", ...Array(8).fill("/file")]) {
          const { status } = await requestRaw(port, "GET", path, { "User-Agent": "curl/8" });
          assertEquals(status, 200, `${path} with ${database}`);
          if (path.startsWith("/v1")) calls++;
        }
      };
      await callAll();
      const restore = away();
      const until = performance.now() + AWAY_MS;
      while (performance.now() < until) await Promise.all([callAll(), callAll(), callAll()]);
      await restore();
      await callAll();
      assertEquals(await end("SIGTERM"), 0);
      const { text, errors } = await usage(database, ["--json"]);
      const clients = JSON.parse(text || errors).clients as { client: string; calls: number }[];
      assertEquals(clients.map((each) => [each.client, each.calls]), [["app curl", calls]]);
    });
  },
);

needing(...NPM)("prom-client counts the calls of the README's lines", async () => {
  const { folder, node24 } = installed();
  const [imported = "", ...others] = blockOf("import { Counter").split("\n");
  const program = expressProgram("sqlite:./metrics.sqlite");
  const metered = program.replace(/^app\.use\(.*\n/m, () => others.join("\n"));
  await Deno.writeTextFile(`${folder}/metrics.mjs`, `${imported}\n${metered}`);
  const { port, end } = await serve(node24, "metrics.mjs");
  for (const path of ["/v1/songs", "/v1/songs", "/v1/none", "/v2/songs"]) {
    await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  }
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  assertMatch(metrics, /^retired_calls_total\{route="\/v1",phase="deprecated"\} 2$/m);
  assertEquals(await end("SIGTERM"), 0);
});

/** Forty routes, of which the first three are those of the README. */
const FORTY = ["/v1/songs", "/v1/songs/:id", "/v1/albums/:id"]
  .concat(Array.from({ length: 37 }, (_, index) => `/v1/things-${index}/:id`));
const KEYS = ["KeyA", "KeyB", "KeyC"];
const KEYED = '{ successor, client: (request) => request.headers["x-key"] }';

/** The calls of each key to each route: none to every fourth one. */
const CALLS = FORTY.map((_, at) =>
  at % 4 === 0 ? [0, 0, 0] : KEYS.map((_, key) => at % 3 === key ? 5 : at % 2 === key ? 2 : 0)
);

/** An application with a table of routes, mounted in a loop as the README shows. */
type ManyRoutes = readonly [
  name: string,
  create: string,
  /** Words of the blocks of README that mount, and that check. */
  words: readonly [mount: string, check?: string],
  /** Its handlers are loaded when they are first called. */
  rest: string,
];

const EXPRESS: ManyRoutes = [
  "Express",
  "express();",
  ["app.all(", "app.router.stack"],
  `for (const path of Object.keys(routes)) {
    app.get(path, async (_, response) => response.json((await import("./thing.mjs")).thing));
  }
  CHECK
  const server = app.listen(Number(process.env.PORT), "127.0.0.1");`,
];

const FASTIFY: ManyRoutes = [
  "Fastify",
  "fastify();",
  ["routeOptions"],
  `for (const path of Object.keys(routes)) {
    app.get(path, async () => (await import("./thing.mjs")).thing);
  }
  CHECK
  await app.listen({ port: Number(process.env.PORT) });
  const { server } = app;`,
];

/** Returns the program of an application with a table of routes, from the blocks of README. */
function manyProgram(
  [, create, [mount, check], rest]: ManyRoutes,
  { table, options = "{ successor }" }: { table(block: string): string; options?: string },
): string {
  return `import { definePolicy } from "@media-head/lifecycle";
    import { openUsage } from "@media-head/lifecycle/usage";
    import express from "express";
    import { fastify } from "fastify";
    ${table(blockOf("const sunsets"))}
    const app = ${create}
    ${blockOf(mount).replace("{ successor }", options)}
    ${rest.replace("CHECK", () => check === undefined ? "" : blockOf(check))}
    process.once("SIGTERM", () => {
      server.close(() => usage.close());
      server.closeAllConnections();
    });`;
}

const THING = 'export const thing = ["a thing"];';

needing(...NPM, ...POSTGRES)(
  "each of forty routes has its verdict, also after one of three processes was killed",
  async () => {
    const { folder, node24: node } = installed();
    const { database: url, run: change } = await postgresRecord();
    const more = FORTY.slice(3).map((path) => `"${path}": "2027-06-30",\n`).join("");
    const table = (block: string) =>
      block.replace(/^};$/m, `${more}};`).replace("postgres://user:password@host/calls", url);
    await Deno.writeTextFile(
      `${folder}/many.mjs`,
      manyProgram(EXPRESS, { table, options: KEYED }),
    );
    await Deno.writeTextFile(`${folder}/thing.mjs`, THING);
    const ask = (...words: string[]) => usage(url, ["--gate", "30", ...words]);
    const processes = [];
    for (const _ of KEYS) processes.push(await serve(node, "many.mjs"));
    await change(begunBefore(40));
    const sent = CALLS.map((calls) => [...calls]);
    const call = async (at: number, key: number, port: number) => {
      const path = (FORTY[at] ?? "").replace(":id", "7");
      const headers = { "User-Agent": "okhttp/4.12.0", "X-Key": KEYS[key] ?? "" };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      assertEquals([response.status, await response.json()], [200, ["a thing"]]);
      assertEquals(
        response.headers.get("link"),
        `<${path.replace("v1", "v2")}>; rel="successor-version"`,
      );
    };
    for (const [at, calls] of CALLS.entries()) {
      for (const [key, count] of calls.entries()) {
        for (let n = 0; n < count; n++) await call(at, key, processes[n % 3]?.port ?? 0);
      }
    }

    /** Checks the gate's lines and its JSON against what was sent. */
    const check = async () => {
      const start = Date.now();
      const asOf = async () => JSON.parse((await ask("--json")).text).asOf;
      await until("the heartbeats", async () => Date.parse(await asOf()) > start);
      const [{ code, text }, inJson] = await Promise.all([ask(), ask("--json")]);
      assertEquals(code, 1);
      const lines = sent.map((calls, at) => {
        const total = calls.reduce((sum, count) => sum + count);
        const sunset = FORTY[at] === "/v1/albums/:id" ? "2027-12-31" : "2027-06-30";
        if (total === 0) return `${FORTY[at]}: clear, but announced until ${sunset}T00:00:00Z`;
        const all = `${total} call${total === 1 ? "" : "s"}`;
        return `${FORTY[at]}: called, ${all}, the last recorded at TIME`;
      });
      const said = text.split("\n").filter((line) => /^\/v1\S*: /.test(line))
        .map((line) => line.replace(/recorded at \S+Z$/, "recorded at TIME"));
      assertEquals(said, lines);
      const all = sent.flat().reduce((sum, count) => sum + count);
      const called = sent.filter((calls) => calls.some((count) => count > 0)).length;
      assertMatch(
        text,
        RegExp(`^Still called: ${all} calls to ${called} routes by 3 clients `, "m"),
      );
      const json = JSON.parse(inJson.text);
      assertEquals(json.verdict, "called");
      const verdicts = sent.map((calls) =>
        calls.some((count) => count > 0) ? "called" : "announced"
      );
      assertEquals(json.verdicts.map((each: { verdict: string }) => each.verdict), verdicts);
      for (const [at, { route, clients }] of json.verdicts.entries()) {
        assertEquals(route, FORTY[at]);
        const counts = KEYS.map((key) =>
          clients.find(({ client }: { client: string }) => client === `id ${key}`)?.calls ?? 0
        );
        assertEquals(counts, sent[at], route);
      }
    };
    await check();

    const [killed, ...others] = processes;
    await killed?.end("SIGKILL");
    await change(silenceOf(killed?.pid ?? 0));
    await check();
    const asked = [ask("--route", "/v1/songs"), ask("--route", "/v1/songs/:id")];
    const [silent] = await Promise.all(asked);
    assertEquals((await Promise.all(asked)).map(({ code }) => code), [4, 1]);
    assertMatch(silent?.text ?? "", RegExp(`^Not on record: .* process ${killed?.pid}[ ,]`, "m"));

    await call(0, 2, others[0]?.port ?? 0);
    await call(0, 2, others[1]?.port ?? 0);
    sent[0] = [0, 0, 2];
    await check();
    for (const { end } of others) assertEquals(await end("SIGTERM"), 0);
  },
);

for (const scene of [EXPRESS, FASTIFY]) {
  needing(...NPM)(
    `in ${
      scene[0]
    }, a route that a process leaves out is unknown, and a key without a handler fails`,
    async () => {
      const { folder, node24: node } = installed();
      const { database, run: change } = await sqliteRecord(`left-out-${scene[0]}`);
      const table = (block: string) =>
        block.replace("postgres://user:password@host/calls", database);
      const program = manyProgram(scene, { table });
      const files = {
        "all.mjs": program,
        "fewer.mjs": program.replace(/^.*"\/v1\/songs\/:id": .*\n/m, ""),
        "no-handler.mjs": program.replace(
          "get(path,",
          'get(path.replace("songs/:id", "songs/:songId"),',
        ),
        "thing.mjs": THING,
      };
      for (const [name, text] of Object.entries(files)) {
        await Deno.writeTextFile(`${folder}/${name}`, text);
      }
      const processes = [await serve(node, "all.mjs"), await serve(node, "fewer.mjs")];
      await change(begunBefore(40));
      const { code, text } = await usage(database, ["--gate", "30"]);
      assertEquals(code, 3, text);
      assertMatch(text, /^\/v1\/songs: clear, but announced until /m);
      assertMatch(text, /^\/v1\/songs\/:id: unknown/m);
      const left = `^Unknown: .* process ${processes[1]?.pid} .* counts .* not /v1/songs/:id: `;
      assertMatch(text, RegExp(left));
      for (const path of ["songs", "songs/7?page=2"]) {
        const response = await fetch(`http://127.0.0.1:${processes[0]?.port}/v1/${path}`);
        assertEquals(await response.json(), ["a thing"]);
        const link = response.headers.get("link");
        assertEquals(link, `</v2/${path}>; rel="successor-version"`);
      }
      for (const { end } of processes) assertEquals(await end("SIGTERM"), 0);
      const called = await usage(database, ["--gate", "30"]);
      assertMatch(called.text, /^\/v1\/songs: called, 1 call, /m);

      const start = [`PORT=${freePort()}`, node, "no-handler.mjs"];
      const failed = await run(folder, "env", ...start);
      assertEquals(failed.code, 1);
      assertMatch(failed.errors, /Error: No handler for \/v1\/songs\/:id$/m);
    },
  );
}

needing(...NPM)("a handler that is loaded later is mounted at the start", async () => {
  const { folder, node24: node } = installed();
  await Deno.writeTextFile(`${folder}/songs.mjs`, 'export const GET = () => new Response("old");');
  await Deno.writeTextFile(
    `${folder}/lazy.mjs`,
    `import { definePolicy } from "@media-head/lifecycle";
    import { openUsage } from "@media-head/lifecycle/usage";
    const routes = { "/v1/songs": definePolicy({ deprecatedAt: "2026-11-21" }) };
    const usage = await openUsage("sqlite:./lazy.sqlite", { routes });
    const successor = () => "/v2/songs";
    ${blockOf("export const songs")}
    if (process.argv[2] === "call") {
      const response = await songs(new Request("http://test/v1/songs"));
      console.log(response.headers.get("link"), await response.text());
    }
    await usage.close();`,
  );
  for (const [word = "", printed, calls] of [["", "", 0], ["call", "</v2/songs>", 1]] as const) {
    const { code, text, errors } = await run(folder, node, "lazy.mjs", word);
    assertEquals([code, text.split(";")[0]?.trim()], [0, printed], errors);
    using database = new DatabaseSync(`${folder}/lazy.sqlite`);
    const sessions = database.prepare("SELECT policies FROM media_head_session").all();
    const mounted = sessions.map(({ policies }) => Object.keys(JSON.parse(String(policies))));
    assertEquals(mounted, Array(calls + 1).fill(["/v1/songs"]));
  }
});

needing(...NPM, program("openssl"))(
  "on Node, the gate says how to trust a certificate of an unknown issuer",
  async () => {
    const { folder, node24: node } = installed();
    const { certificate, key } = await createCertificate(folder);
    const file = expressProgram(`sqlite:${folder}/trust.sqlite`);
    await Deno.writeTextFile(`${folder}/trust.mjs`, file);
    const { port, end } = await serve(node, "trust.mjs");
    await using server = Deno.serve(
      {
        port: 0,
        hostname: "127.0.0.1",
        cert: await Deno.readTextFile(certificate),
        key: await Deno.readTextFile(key),
        onListen() {},
      },
      ({ url, method, headers }) =>
        fetch(`http://127.0.0.1:${port}${new URL(url).pathname}`, { method, headers }),
    );
    const gate = ["usage", "--database", `sqlite:${folder}/trust.sqlite`, "--gate", "1"];
    const probe = ["--probe", `https://127.0.0.1:${server.addr.port}/v1/songs`];
    const refused = await run(folder, node, COMMAND, ...gate, ...probe);
    assertEquals(refused.code, 3);
    assertMatch(
      refused.text,
      /\(self-signed .*\)\. .* NODE_EXTRA_CA_CERTS\. /,
    );
    const trusting = [`NODE_EXTRA_CA_CERTS=${certificate}`, node, COMMAND, ...gate, ...probe];
    const probed = await run(folder, "env", ...trusting);
    assertMatch(probed.text, / A probe of \/v1 /);
    assertEquals(await end("SIGTERM"), 0);
  },
);

/** Phases of README's policy, and what a request with the old version gets in each. */
const PHASES: [now: string, status: number][] = [
  ["2026-12-01T00:00Z", 200],
  ["2027-05-03T09:30Z", 503],
  ["2027-07-01T00:00Z", 410],
];

needing(...NPM)("README's program retires a version, and nothing beside it", async () => {
  const { folder, node24 } = installed();
  const [, section = ""] = /^## More than paths\n([^]*?)^##/m.exec(PAGE) ?? [];
  const [, program = ""] = /```js ignore\n([^]*?)```/.exec(section) ?? [];
  const served = program.replace("8000", "process.env.PORT").replace("./calls", "./version");
  const end = 'process.on("SIGTERM", () => usage.close().then(() => process.exit(0)));';
  for (const [now, refused] of PHASES) {
    const text = `Date.now = () => ${Date.parse(now)};\n${served}${end}`;
    await Deno.writeTextFile(`${folder}/version.mjs`, text);
    const { port, end: stop } = await serve(node24, "version.mjs");
    for (const method of ["HEAD", "GET"]) {
      for (const [version, status, date] of [["2", 200, null], ["1", refused, "@1795219200"]]) {
        const headers = { "API-Version": String(version) };
        const response = await fetch(`http://127.0.0.1:${port}/songs`, { method, headers });
        await response.body?.cancel();
        const said = ["deprecation", "vary"].map((name) => response.headers.get(name));
        assertEquals([response.status, ...said], [status, date, "API-Version"], `${method} ${now}`);
        assert(!response.headers.get("link")?.includes("successor-version"));
      }
    }
    assertEquals(await stop("SIGTERM"), 0);
  }
  const [, words = ""] = /^npx --no lifecycle (.*--route .*)$/m.exec(section) ?? [];
  const line = words.replace("./calls", "./version");
  const { code, text } = await run(folder, "sh", "-c", `"$0" ${COMMAND} ${line}`, node24);
  assertEquals(code, 1);
  assertMatch(text, /^Still called: 6 calls to version 1 by 1 client /);
});

needing(...NPM)("a gate that lacks a module is unknown, and says what it needs", async () => {
  const { folder, node22, node24 } = installed();
  const words = [COMMAND, "usage", "--database", "sqlite:./calls.sqlite", "--gate", "30"];
  const blind = await run(folder, node22, "--no-experimental-sqlite", ...words);
  assertEquals([blind.code, blind.errors], [
    3,
    "lifecycle: SQLite needs the module node:sqlite, which is missing here (Node v22.23.3): use " +
    "Node 22.13 or later without --no-experimental-sqlite, Bun 1.4 or later, or Deno\n",
  ]);
  const alone = await Deno.makeTempDir();
  const name = "node_modules/@media-head/lifecycle";
  copy(`${folder}/${name}`, `${alone}/${name}`);
  const { code, errors } = await run(alone, node24, ...words);
  assertEquals(code, 3);
  assertMatch(errors, /Cannot find module 'commander'/);
  await Deno.remove(alone, { recursive: true });
});
