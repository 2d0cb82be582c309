/**
 * The library as users install it, from the tarball: on every runtime, with every framework as README
 * shows. The programs in `package/` hold README's lines as they stand there, and
 * answer in each of the ways that their framework documents.
 */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { basename, dirname, join } from "node:path";
import { check } from "../../lib/lifecycle/checking/check.ts";
import { definePolicy, withLifecycle } from "../../lib/lifecycle/mod.ts";
import { CACHES, needsOf, startCache } from "../support/caches.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { fragmentsIn } from "../support/markdown.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { Origin } from "../support/origin.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { requestHead } from "../support/raw_http.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until, within } from "../support/within.ts";

const PROGRAMS = "tests/with_packages/package";
const ORIGIN = "https://a.example";
const test = needing(...NPM);

const PAGES = ["README", "frameworks", "clients"].map((name) => `lib/lifecycle/${name}.md`);

/** The blocks of the library's pages in a language. */
const blocks = (language = "ts") => {
  const pages = PAGES.map((page) => Deno.readTextFileSync(fromRoot(page))).join("");
  const all = [...pages.matchAll(/```(\w+) ignore\n([^]*?)```/g)];
  return all.flatMap(([, of, block = ""]) => of === language ? [block] : []);
};

/** A folder with the tarball, the frameworks, and the programs, as users have them. */
const installed = shared(NPM, async () => {
  const place = await installTarball();
  const { folder } = place;
  for (const { name } of Deno.readDirSync(fromRoot(PROGRAMS))) {
    await Deno.copyFile(fromRoot(`${PROGRAMS}/${name}`), `${folder}/${name}`);
  }
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, text);
  const express = await Deno.readTextFile(`${folder}/express.mts`);
  const older = express.replace('"express"', '"express4"');
  await write("express4.mts", `// @ts-nocheck: its types are of version 5\n${older}`);
  // A clock for programs that run in a process of their own.
  const clock = 'Date.now = () => Number(readFileSync("now"));';
  await write("clock.mjs", `import { readFileSync } from "node:fs";\n${clock}`);
  // Parts of programs get what README shows before them.
  const before = `import { retire, withLifecycle } from "@media-head/lifecycle";
import { isOld, policy, successor } from "./policy.ts";
declare function handle(request: globalThis.Request): globalThis.Response;
console.log(isOld, handle, withLifecycle);
`;
  const files: [name: string, text: string, before?: string][] = [
    ["policy.ts", "export const policy"],
    ["hono.ts", 'from "hono"'],
    ["fetch_handler.ts", "export default {", before],
    ["inspect.ts", "inspect(await fetch("],
    ["refusal_body.ts", "const refusalBody = ", "export { refusalBody, retired };\n"],
    [
      "by_version.ts",
      'response.vary("X-Version")',
      `import type { Express } from "express";
import type { Middleware } from "@media-head/lifecycle";
export const mountByVersion = (app: Express, retired: Middleware) =>
`,
    ],
  ];
  const server = blocks("js").find((block) => block.includes("retire(policy")) ?? "missing";
  const typed = server.replace("retire(", "retire<Request, Response>("); // as README says
  await write("server.mts", 'import type { Request, Response } from "express";\n' + typed);
  for (const [name, text, before = ""] of files) {
    await write(name, before + (blocks().find((block) => block.includes(text)) ?? "missing"));
  }
  return { ...place, node: `${folder}/node_modules/node24/bin/node` };
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

test("the package works on the oldest Node and the newest, on Deno and on Bun", async () => {
  const { folder, node } = installed();
  const policy = definePolicy({ deprecatedAt: "2026-01-01" });
  const retired = withLifecycle(() => new Response("old"), policy, { successor: () => "/v2" });
  await using origin = new Origin(retired);
  const url = origin.url("/v1");
  const expected = `200 ${url}: deprecated (deprecation 2026-01-01T00:00:00Z)\n` +
    `  successor-version: ${origin.url("/v2")}\n  no faults\n`;
  const command = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";
  const bun = `${folder}/node_modules/bun/bin/bun`;
  const runtimes = [["node"], [node], [Deno.execPath(), "run", "-A"], [bun]] as const;
  await sideBySide(runtimes, async ([program, ...args]) => {
    for (const name of ["retire.mjs", "leaving.mjs", "require.cjs"]) {
      // On Bun, writeHead() sends one of two fields whose names differ in case, and Node both.
      if (program === bun && name === "retire.mjs") continue;
      const { text, errors } = await run(folder, program, ...args, name);
      assertEquals(text, "passed\n", errors);
    }
    const { code, text } = await run(folder, program, ...args, command, "check", url);
    assertEquals([code, text], [0, expected]);
    // Its own stream would take what a full disk leaves out of a file for written.
    for (const place of ["/dev/full", `${crypto.randomUUID()}.txt`]) {
      const limited = `trap "" XFSZ; ulimit -f 1; "$@" usage --help > ${place}`;
      const { code, errors } = await run(
        folder,
        "sh",
        "-c",
        limited,
        "sh",
        program,
        ...args,
        command,
      );
      assertMatch(errors, /^lifecycle: The output cannot be written \(.+\)\n$/);
      assertEquals(code, 1);
    }
  });
  assertEquals((await run(folder, "npx", "--no", "lifecycle", "check", url)).text, expected);
  assertEquals((await run(folder, "node", command, "check", url, "http://127.0.0.1:9")).code, 2);
  const wrong = await run(folder, "node", command, "chek");
  assertEquals([wrong.code, wrong.text], [2, ""]);
  assertMatch(wrong.errors, /^error: unknown command 'chek'\n/);
});

test("the package's types are found in both ways, by the oldest TypeScript and the newest", async () => {
  const { folder } = installed();
  const common = ["consumer.ts", "usage.ts"];
  // The types of Node and axios are for newer compilers.
  const newer = { types: ["node"], lib: ["es2023", "dom", "dom.iterable"] };
  const rows: [resolution: string, compiler: string, files: string[], options: object][] = [
    ["nodenext", "typescript50", common, {}],
    ["nodenext", "typescript", [...common, "axios.mts", "consumer.cts"], newer],
    ["bundler", "typescript", [...common, "axios.mts"], newer],
  ];
  for (const [moduleResolution, compiler, files, options] of rows) {
    const compilerOptions = {
      ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
      skipDefaultLibCheck: true, // the compiler's own library
      ...{ target: "es2022", lib: ["es2022", "dom"], types: [] },
      module: moduleResolution === "bundler" ? "esnext" : moduleResolution,
      moduleResolution,
      ...options,
    };
    const config = JSON.stringify({ compilerOptions, files });
    await Deno.writeTextFile(`${folder}/tsconfig.test.json`, config);
    const words = [`node_modules/${compiler}/bin/tsc`, "--project", "tsconfig.test.json"];
    const { code, text } = await run(folder, "node", ...words);
    assertEquals([code, text], [0, ""], `${compiler} ${moduleResolution}`);
  }
  const { code, errors } = await run(folder, Deno.execPath(), "check", "consumer.ts", "usage.ts");
  assertEquals(code, 0, errors);
});

test("the package is small, and the library in it needs nothing else", async () => {
  const { folder, tarball } = installed();
  const { text } = await run(folder, "tar", "-tvzf", tarball);
  const files = text.trim().split("\n").map((line) => line.split(/\s+/));
  const size = files.reduce((sum, [, , size]) => sum + Number(size), 0);
  assert(size <= 660_000, `${size} bytes`);
  const names = files.map((words) => words.at(-1)?.replace("package/", "") ?? "");
  for (
    const name of ["README.md", "LICENSE", "package.json", "lifecycle/mod.mjs", "usage/mod.mjs"]
  ) {
    assert(names.includes(name), name);
  }
  const path = `${folder}/node_modules/@media-head/lifecycle`;
  const manifest = JSON.parse(await Deno.readTextFile(`${path}/package.json`));
  const { type, exports, repository, homepage } = manifest;
  assertEquals([type, exports["./package.json"]], ["commonjs", "./package.json"]);
  assertEquals(repository, { type: "git", url: "https://example.com/c.git" });
  assertEquals(homepage, "https://example.com/c");
  const { dependencies, peerDependencies, peerDependenciesMeta, scripts } = manifest;
  assertEquals([Object.keys(dependencies), scripts], [["commander"], undefined]);
  assertEquals(Object.keys(peerDependencies), ["pg"]);
  assertEquals(peerDependenciesMeta, { pg: { optional: true } });
  for (const name of names.filter((name) => /js$/.test(name))) {
    const code = await Deno.readTextFile(`${path}/${name}`);
    const imports = [...code.matchAll(/^(?:import .*from |[^*\n]*\brequire\()"([^"]+)"/gm)]
      .map(([, from = ""]) => from);
    const isLibrary = /^(?:lifecycle|http)\//.test(name);
    const isAllowed = (from: string) =>
      isLibrary
        ? from.startsWith(".") &&
          /^(?:lifecycle|http)\/[\w/]+\.js$/.test(join(dirname(name), from))
        : /^(?:\.\.?\/.*\.js|node:.*|commander|pg)$/.test(from);
    assert(!/\b(?:audio|video|catalogue|Kind|Token)\b/.test(code), `${name} speaks of media`);
    assertEquals(imports.filter((from) => !isAllowed(from)), [], name);
    const longest = Math.max(...code.split("\n").map((line) => line.length));
    assert(longest <= 160 && code.includes("/"), `${name} is not readable`);
  }
});

test("the pages in the package, and in that for JSR, lead to what is packed with them", async () => {
  const { folder } = installed();
  const ofLibrary = Object.fromEntries(PAGES.map((page) => [basename(page), page]));
  const packages: [root: string, pages: { [page: string]: string }][] = [
    [
      `${folder}/node_modules/@media-head/lifecycle`,
      {
        ...ofLibrary,
        "usage/README.md": "lib/usage/README.md",
        "usage/applications.md": "lib/usage/applications.md",
        "usage/front/README.md": "lib/usage/front/README.md",
      },
    ],
    [`${folder}/jsr`, ofLibrary],
  ];
  for (const [root, pages] of packages) {
    const found = new Set<string>();
    for (const [page, source] of Object.entries(pages)) {
      const [packed, original] = [`${root}/${page}`, fromRoot(source)].map((path) =>
        Deno.readTextFileSync(path)
      ) as [string, string];
      for (const [, target = ""] of packed.matchAll(/\]\(([^)]+)\)/g)) {
        if (target.startsWith("https:")) continue;
        const [file = "", fragment] = target.split("#");
        const to = file === "" ? page : join(dirname(page), file);
        if (to !== page) found.add(to);
        const text = await Deno.readTextFile(`${root}/${to}`);
        if (fragment !== undefined) assert(fragmentsIn(text).includes(fragment), target);
      }
      const link = /\[([^\]]+)\]\([^)]+\)/g;
      assertEquals(packed.replaceAll(link, "$1"), original.replaceAll(link, "$1"));
    }
    assertEquals(found, new Set(Object.keys(pages)));
  }
});

test("README's program for Express runs as it is pasted, and counts routes without their ids", async () => {
  const { folder } = installed();
  const [source = ""] = blocks("js");

  // Beside it, a middleware that sets a field as the head is sent, after the library's and before.
  const late = `app.use((_, response, next) => {
    onHeaders(response, () => response.setHeader("Cache-Control", "max-age=99999999"));
    next();
  });`;
  const mount = 'app.use("/v1", retired);';
  const imports = 'import onHeaders from "on-headers";\n';
  await Deno.writeTextFile(`${folder}/now`, `${Date.parse("2026-12-01")}`);
  const variants: [source: string, cacheControl: RegExp][] = [
    [source, /^max-age=0, must-revalidate/],
    [imports + source.replace(mount, mount + late), /^max-age=18230399, must-revalidate/],
    [imports + source.replace(mount, late + mount), /^max-age=99999999$/], // as README warns
  ];
  for (const [source, cacheControl] of variants) {
    await Deno.writeTextFile(`${folder}/server.mjs`, source);
    const port = freePort();
    const words = ["node", "--import", "./clock.mjs", "server.mjs"];
    await using server = await start(words, { port, env: { PORT: `${port}` } });
    for (const id of ["7", "0b5c1f6e-1d6b-4a53-8f43-2d7f3c1c9b1a"]) {
      const { status, headers } = await send(`http://127.0.0.1:${port}`, "HEAD", `/v1/songs/${id}`);
      assertEquals([status, headers.get("deprecation")], [200, "@1795219200"]);
      assertMatch(headers.get("link") ?? "", new RegExp(`^</v2/songs/${id}>; rel=`));
      assertMatch(headers.get("cache-control") ?? "", cacheControl);
    }
    const expected = "curl calls HEAD /v1/songs/:id\n".repeat(2);
    await until("the counts", () => server.output() === expected);
  }
});

test("README's content of refusals is sent in every framework, and its mount by a version varies", async () => {
  const { folder, node } = installed();
  const { text, errors } = await run(folder, node, "refusals.mts");
  assertEquals(text, "passed\n", errors);
});

/** Paths that say the framework, what tells which client is refused, the versions and the methods. */
const SEQUENCES = ["express", "fastify", "hono"].flatMap((framework) =>
  ["mount", "applies"].flatMap((decider) =>
    ["1212", "2121"].flatMap((versions) =>
      ["GET,HEAD", "HEAD,GET"].map((methods) => `/${framework}/${decider}/${versions}-${methods}`)
    )
  )
);

for (const cache of CACHES) {
  needing(...NPM, ...needsOf(cache))(
    `${cache} gives neither of two clients what a framework meant for the other`,
    async () => {
      const { folder, node } = installed();
      await Deno.writeTextFile(`${folder}/now`, `${Date.parse("2027-02-01")}`);
      const port = freePort();
      const words = [node, "--import", "./clock.mjs", "two_clients.mts"];
      await using _server = await start(words, { port, env: { PORT: `${port}` } });
      await using daemon = await startCache(cache, port);
      const ask = async (path: string, method: string, version: string) => {
        const headers = { "X-Version": version };
        const response = await fetch(`http://127.0.0.1:${daemon.port}${path}`, { method, headers });
        const text = await response.text();
        return `${response.status} ${response.ok ? method === "GET" ? text : version : "refused"}`;
      };
      const phases = [["before", "2027-02-01", "200 1"], ["after", "2027-07-01", "410 refused"]];
      for (const [phase = "", now = "", old] of phases) {
        await Deno.writeTextFile(`${folder}/now`, `${Date.parse(now)}`);
        for (const path of SEQUENCES) {
          const [, versions = "", methods = ""] = /(\d+)-(.+)/.exec(path) ?? [];
          for (const method of methods.split(",")) {
            for (const version of versions) {
              const expected = version === "1" ? old : "200 2";
              const note = `${method} ${path} by version ${version} ${phase}`;
              assertEquals(await ask(`${path}-${phase}`, method, version), expected, note);
            }
          }
        }
      }
    },
  );
}

/** Each phase: an instant, the status of a refusal, Cache-Control, and the end. */
const PHASES: [
  phase: string,
  now: string,
  refused: number | undefined,
  cacheControl: RegExp,
  end: string | null,
][] = [
  [
    ...["announced", "2026-11-20T23:59:00Z", undefined] as const,
    ...[/\bmax-age=59, .*must-revalidate/, "2026-11-21"] as const,
  ],
  [
    ...["deprecated", "2027-05-03T08:59:00Z", undefined] as const,
    ...[/\bmax-age=59, .*must-revalidate/, "2027-05-03T09:00Z"] as const,
  ],
  ["brownout", "2027-05-03T09:30:00Z", 503, /^no-store, no-transform$/, "2027-05-03T10:00Z"],
  ["removed", "2027-06-30T00:00:00Z", 410, /^no-store, no-transform$/, null],
];

/** A program that runs. */
interface Subject {
  readonly origin: string;
  /** How many ways it has to answer, at `/v1/ways/0` and so on. */
  readonly ways: number;
  /** Sets its clock, and returns the calls that it has counted since. */
  readonly control: (query: string) => Promise<unknown>;
  /** Whether its pages for exceptions are announced on. */
  readonly hasErrors: boolean;
  /** Whether it lets a page read its responses, and counts calls; README's for Hono does not. */
  readonly isWhole: boolean;
  /** What a client gets of content that fails: Workers end it as if it were whole. */
  readonly broken?: string;
}

async function send(origin: string, method: string, path: string) {
  const headers = { "User-Agent": "curl/8", Origin: ORIGIN };
  const response = await fetch(origin + path, { method, headers, redirect: "manual" });
  const text = await response.text().catch(() => "cut off");
  return { status: response.status, headers: response.headers, text };
}

/** Checks what a program answers in every phase, by HEAD and GET, and what it counts. */
async function checkPhases(subject: Subject): Promise<void> {
  const { origin, control, isWhole, broken = "cut off" } = subject;
  const ways = Array.from({ length: subject.ways }, (_, way) => `ways/${way}`);
  const paths: [path: string, status: number, content: string | undefined][] = [
    ...ways.map((path): [string, number, string] => [path, 200, "old"]),
    ...subject.hasErrors ? [["error", 500, undefined] as [string, number, undefined]] : [],
    ["missing", 404, undefined],
    ["redirect", 302, undefined],
    ["broken", 200, broken],
  ];
  for (const [phase, now, refused, cacheControl, end] of PHASES) {
    await control(`?${Date.parse(now)}`);
    for (const [path, own, content] of refused ? paths.slice(0, 1) : paths) { // all is refused alike
      const status = refused ?? own;
      const isWay = refused === undefined && path.startsWith("ways");
      const said: string[] = [];
      // A HEAD may end before its head is sent.
      for (const method of path === "broken" ? ["GET"] : ["HEAD", "GET"]) {
        const note = `${phase} ${method} ${path}`;
        const answer = await send(origin, method, `/v1/${path}`);
        assertEquals(answer.status, status, note);
        const text = refused ? `"status":${status},` : content ?? "";
        if (method === "GET") assertStringIncludes(answer.text, text, note);
        said.push(checkFields(answer.headers, { path, isWay, isRefused: !!refused, note }));
        const allowed = answer.headers.get("access-control-allow-origin");
        if (isWay || refused) assertEquals(allowed, isWhole ? ORIGIN : refused ? "*" : null, note);
        if (isWay || refused) assertMatch(answer.headers.get("cache-control") ?? "", cacheControl);
        const call = {
          route: `/v1/${path}`,
          client: "curl",
          phase,
          until: end && Date.parse(end),
          status,
          breaks: status !== 404,
        };
        assertEquals(await control(`?${Date.parse(now)}`), isWhole ? [call] : [], note);
      }
      assertEquals(said[0], said.at(-1), `${phase} ${path}`);
    }
  }
}

/** Checks the announcement and what is kept beside it; returns all that a HEAD shares with a GET. */
function checkFields(
  headers: Headers,
  { path, isWay, isRefused, note }: {
    path: string;
    isWay: boolean;
    isRefused: boolean;
    note: string;
  },
): string {
  assertEquals(headers.get("deprecation"), "@1795219200", note);
  assertEquals(headers.get("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT", note);
  const links = (headers.get("link") ?? "").split(", ");
  const announced = [`</v2/${path}>; rel="successor-version"`]
    .concat(
      ["deprecation", "sunset"].map((rel) => `<https://example.com/deprecation>; rel="${rel}"`),
    );
  assertEquals(links.filter((link) => !/rel="?(?:next|prev)\b/.test(link)), announced, note);
  assertEquals(links.includes('</a>; rel="next"'), isWay, note);
  const cookies = headers.getSetCookie().map((cookie) => cookie.slice(0, 3));
  assertEquals(cookies, isWay ? ["a=1", "b=2"] : [], note);
  // Some frameworks say of the content only on a GET what it is; some error pages name the method.
  const ofContent = isRefused ? /^$/ : /^(?:content-.*|transfer-encoding|etag)$/;
  const shared = [...headers].filter(([name]) =>
    !/^(?:date|connection|keep-alive)$/.test(name) && !ofContent.test(name)
  );
  return JSON.stringify(shared);
}

/** Targets of requests for the old path, however it is spelled, and its successor. */
const SPELLINGS: [target: string, successor: string][] = [
  ["/v1/ways/0?page=2&next=/v1", "/v2/ways/0?page=2&next=/v1"],
  ["/V1/ways/0", "/v2/ways/0"],
  ["/%761/ways/0", "/v2/ways/0"],
  ["/v1", "/v2"],
  ["/v1?page=2", "/v2?page=2"],
  ["http://b.example/v1/ways/0?a", "/v2/ways/0?a"], // in absolute form
  ["http://b.example/%561/ways/0", "/v2/ways/0"],
];

/**
 * Checks that the old path is announced and refused, and a longer name never. A framework that mounts
 * by path may find no such path in a spelling, but must then find no route, either.
 */
async function checkSpellings(
  { origin, control }: Subject,
  { mounts, isWorker = false }: { mounts: boolean; isWorker?: boolean },
): Promise<void> {
  const port = Number(new URL(origin).port);
  const phases = PHASES.filter(([phase]) => phase === "deprecated" || phase === "removed");
  for (const [phase, now, refused] of phases) {
    await control(`?${Date.parse(now)}`);
    for (const [target, successor] of SPELLINGS) {
      if (isWorker && target.startsWith("http:")) continue; // workerd takes it for a path
      const note = `${phase} ${target}`;
      const { status, headers } = await sendRaw(port, target);
      if (mounts && status === 404 && headers.get("deprecation") === null) continue;
      assertEquals(headers.get("deprecation"), "@1795219200", note);
      assertStringIncludes(headers.get("link") ?? "", `<${successor}>; rel="successor-version"`);
      if (refused !== undefined) assertEquals(status, refused, note);
    }
    for (const target of ["/v10/ways/0", "/v1.0/ways/0", "/v2/v1"]) {
      const { status, headers } = await sendRaw(port, target);
      assertEquals([status, headers.get("deprecation")], [404, null], `${phase} ${target}`);
    }
  }
  await control("?0");
}

/** Sends a GET with its target as it is given; returns the head of the response. */
async function sendRaw(port: number, target: string) {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(requestHead("GET", target, { Connection: "close" }));
  let text = "";
  const exchange = async () => { // workerd does not close the connection
    for await (const part of connection.readable.pipeThrough(new TextDecoderStream())) {
      if ((text += part).includes("\r\n\r\n")) break;
    }
  };
  await within(`the response to ${target}`, exchange());
  const [line = "", ...lines] = text.slice(0, text.indexOf("\r\n\r\n")).split("\r\n");
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const [, name = "", value = ""] = /^([^:]+): *(.*)$/.exec(line) ?? [];
      return [name, value];
    }),
  );
  return { status: Number(line.split(" ")[1]), headers };
}

/** Starts the programs on Node. Returns where each listens, and how many ways it has to answer. */
async function startAll() {
  const process = await start([installed().node, "main.mts"]);
  const programs: Record<string, { port: number; ways: number }> = JSON.parse(process.output());
  const of = (name: string) => {
    const { port = 0, ways = 0 } = programs[name] ?? {};
    return { origin: `http://127.0.0.1:${port}`, ways };
  };
  const { origin } = of("control");
  return {
    of,
    names: Object.keys(programs).filter((name) => name !== "control"),
    control: async (query: string) => await (await fetch(origin + query)).json(),
    [Symbol.asyncDispose]: process[Symbol.asyncDispose],
  };
}

const onNode = shared(NPM, startAll);

test("every framework on Node retires its routes, however it answers", async (t) => {
  const { of, names, control } = onNode();
  for (const name of names) {
    const isWhole = name !== "Hono";
    const hasErrors = name !== "Fetch";
    const subject = { ...of(name), control, hasErrors, isWhole };
    await t.step(name, async () => {
      await checkPhases(subject);
      await checkSpellings(subject, { mounts: /Express|NestJS|Hono/.test(name) });
    });
  }
});

test("a Fetch handler and Hono retire their routes on Deno and Workers", async (t) => {
  const node = onNode();
  const { folder } = installed();
  const files = ["fetch.mts", "hono_anywhere.mts"];
  const bundle = ["bundle", "--platform=browser", "--outdir=out", ...files];
  const bundled = await run(folder, Deno.execPath(), ...bundle);
  assertEquals(bundled.code, 0, bundled.errors);
  const ports = [freePort(), freePort(), freePort(), freePort()] as const;
  const at = (index: number) => `127.0.0.1:${ports[index]}`;
  const workerd = `${folder}/node_modules/@cloudflare/workerd-linux-64/bin/workerd`;
  const addresses = [`--socket-addr=fetch=${at(0)}`, `--socket-addr=hono=${at(1)}`];
  const serve = [Deno.execPath(), "serve", "--allow-all", "--host=127.0.0.1"];
  await using _ = await start([workerd, "serve", "workers.capnp", ...addresses], {
    port: ports[1],
  });
  await using _fetch = await start([...serve, `--port=${ports[2]}`, "fetch.mts"], {
    port: ports[2],
  });
  await using _hono = await start([...serve, `--port=${ports[3]}`, "hono_anywhere.mts"], {
    port: ports[3],
  });
  for (const index of ports.keys()) {
    const origin = `http://${at(index)}`;
    const control = async (query: string) =>
      await (await fetch(`${origin}/control${query}`)).json();
    const [isFetch, isWorker] = [index % 2 === 0, index < 2];
    const { ways } = node.of(isFetch ? "Fetch" : "Hono");
    const broken = isWorker ? "o" : "cut off";
    const subject = { origin, ways, control, broken, hasErrors: !isFetch, isWhole: isFetch };
    await t.step(`${isFetch ? "Fetch" : "Hono"} on ${isWorker ? "Workers" : "Deno"}`, async () => {
      await checkPhases(subject);
      await checkSpellings(subject, { mounts: !isFetch, isWorker });
      if (isFetch) await checkKept(subject);
      else await checkUpgrade(subject);
    });
  }
});

test("Hono's own requests are retired, too", async () => {
  const { folder, node } = installed();
  const program = `import("./hono_anywhere.mts").then(async ({ default: app }) => {
    const { status, headers } = await app.request("/v1/ways/0?page=2");
    console.log(status, headers.get("Link"));
  });`;
  const { text, errors } = await run(folder, node, "--eval", program);
  assertMatch(text, /^200 .*<\/v2\/ways\/0\?page=2>; rel="successor-version"/, errors);
});

/** Checks that an upgrade to a WebSocket is served, and refused after the removal. */
async function checkUpgrade({ origin, control }: Subject): Promise<void> {
  for (const [now, event] of [["2026-12-01", "open"], ["2027-07-01", "error"]]) {
    await control(`?${Date.parse(now ?? "")}`);
    const socket = new WebSocket(`${origin}/v1/socket`);
    const said = new Promise<string>((resolve) => {
      socket.onopen = socket.onerror = ({ type }) => resolve(type);
    });
    assertEquals(await said, event);
    socket.close();
  }
}

/** Checks what is returned again for each request, and an upgrade to a WebSocket. */
async function checkKept({ origin, control }: Subject): Promise<void> {
  const now = `?${Date.parse("2026-12-01")}`;
  await control(now);
  const answers = await Promise.all([1, 2, 3].map(() => send(origin, "GET", "/v1/kept")));
  for (const { headers } of answers) assertEquals(headers.get("link")?.split(", ").length, 4);
  const socket = new WebSocket(`${origin}/v1/socket`);
  await new Promise((resolve, reject) =>
    Object.assign(socket, { onopen: resolve, onerror: reject })
  );
  socket.close();
  const calls = await control(now) as { status: number }[];
  assertEquals(calls.map(({ status }) => status), [204, 204, 204, 101]);
}

test("what README shows is strict TypeScript, and stands in the programs", async () => {
  const { folder } = installed();
  const { code, text } = await run(
    folder,
    "node_modules/.bin/tsc",
    ...["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"],
    ...["--skipLibCheck", "--allowImportingTsExtensions", "--types", "node"],
    ...["--target", "es2023", "--lib", "es2023,dom,dom.iterable,dom.asynciterable"],
    ...["--module", "nodenext", "main.mts", "fetch.mts", "server.mts"],
    ...["fetch_handler.ts", "inspect.ts", "refusals.mts", "two_clients.mts"],
  );
  assertEquals([code, text], [0, ""]);
  const squeezed = (text: string) => text.replaceAll(/\s+/g, "");
  const lines =
    blocks().find((block) => block.startsWith("// Express"))?.split(/^\/\/ .*\n/m).slice(1) ?? [];
  const names = ["express", "node", "koa", "fastify"];
  assertEquals(lines.length, names.length);
  for (const [index, name] of names.entries()) {
    const program = await Deno.readTextFile(`${folder}/${name}.mts`);
    assert(squeezed(program).includes(squeezed(lines[index] ?? "")), name);
  }
});

needing(...NPM, program("nginx"))(
  "README's line for nginx announces on every status",
  async () => {
    const [line = ""] = /add_header Deprecation .*? always;/.exec(
      await Deno.readTextFile(fromRoot("lib/usage/front/README.md")),
    ) ?? [];
    await using daemon = await Daemon.start("nginx", ({ port, folder }) =>
      nginx(
        folder,
        `access_log off; server { listen 127.0.0.1:${port};
      location / { ${line} return 404; } }`,
      ));
    const { lines } = await check([`http://127.0.0.1:${daemon.port}/`]);
    assertMatch(lines.join("\n"), /^404 .*: deprecated .*\n {2}no faults$/);
  },
);
