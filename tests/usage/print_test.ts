/** The program `lifecycle`, run as a process. */

import { assertEquals, assertMatch } from "@std/assert";
import project from "../../deno.json" with { type: "json" };
import { run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing } from "../support/permissions.ts";

const PROGRAM = [
  Deno.execPath(),
  "run",
  "--quiet",
  "--no-lock",
  "-A",
  "lib/usage/lifecycle_program.ts",
];

/** Runs the program in a shell, with words that the shell may redirect. */
const lifecycle = (words: string) =>
  run(fromRoot("."), "sh", "-c", `"$@" ${words}`, "sh", ...PROGRAM);

needing("processes")("lifecycle --version prints the version of the release", async () => {
  assertEquals(await lifecycle("--version"), { code: 0, text: `${project.version}\n`, errors: "" });
});

needing("processes", LINUX)("output that cannot be written is an error of one line", async () => {
  const rows: [words: string, code: number][] = [
    ["--help", 1],
    ["--version", 1],
    ["check --help", 2],
    ["check http://127.0.0.1:9/", 2],
    ["usage --help", 1],
    ["usage --gate --help", 3], // 1 would mean called
  ];
  for (const [words, code] of rows) {
    const failed = await lifecycle(`${words} > /dev/full`);
    assertMatch(failed.errors, /^lifecycle: The output cannot be written \(.+\)\n$/, words);
    assertEquals([failed.code, failed.text], [code, ""], words);
  }
});

needing("processes")("the help of lifecycle needs no permission", async () => {
  const words = ["run", "--quiet", "--no-lock", "--no-prompt", PROGRAM.at(-1) ?? ""];
  for (const [more, code] of [[["--help"], 0], [["check", "--help"], 0], [[], 2]] as const) {
    const result = await run(fromRoot("."), Deno.execPath(), ...words, ...more);
    assertEquals(result.code, code, result.errors);
    assertMatch(result.text + result.errors, /^Usage: lifecycle /);
  }
});
