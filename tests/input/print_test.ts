/** What commands print, and how they end if that fails, as processes of both programs. */

import { assertEquals, assertMatch } from "@std/assert";
import project from "../../deno.json" with { type: "json" };
import { inFolder } from "../support/media_cli.ts";
import { run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing } from "../support/permissions.ts";

const test = needing("processes", LINUX);

/** The words that run each program. */
const PROGRAMS: Record<string, string[]> = {
  lifecycle: ["--no-lock", "-A", fromRoot("lib/usage/lifecycle_program.ts")],
  media: ["-A", fromRoot("main.ts"), "media"],
};

/** Runs a program with words and redirections of a shell, after some of its commands. */
function inShell(name: string, words: string, first = "") {
  const program = [Deno.execPath(), "run", "--quiet", ...PROGRAMS[name] ?? []];
  return run(fromRoot("."), "bash", "-c", `${first}"$@" ${words}`, "bash", ...program);
}

needing("processes")("lifecycle --version prints the version of the release", async () => {
  const { code, text, errors } = await inShell("lifecycle", "--version");
  assertEquals([code, text, errors], [0, `${project.version}\n`, ""]);
});

test("output that cannot be written is an error of one line", async () => {
  const rows: [name: string, words: string, code: number][] = [
    ["lifecycle", "--help", 1],
    ["lifecycle", "--version", 1],
    ["lifecycle", "check --help", 2], // 1 would mean a fault that was found
    ["lifecycle", "check http://127.0.0.1:9/", 2],
    ["lifecycle", "usage --help", 1],
    ["lifecycle", "usage --gate --help", 3], // 1 would mean called
    ["media", "--help", 1],
    ["media", "usage --gate --help", 3],
  ];
  for (const [name, words, code] of rows) {
    const failed = await inShell(name, `${words} > /dev/full`);
    assertMatch(failed.errors, new RegExp(`^${name}: The output cannot be written \\(.+\\)\\n$`));
    assertEquals([failed.code, failed.text], [code, ""], words);
  }
});

test("a file that takes only a part of the output is one that cannot be written", () =>
  inFolder(async (folder) => {
    for (const name of Object.keys(PROGRAMS)) {
      const file = `${folder}/${name}`;
      const words = `usage --help > ${file}; code=$?; head -c 5 ${file}; exit $code`;
      const { code, text, errors } = await inShell(name, words, 'trap "" XFSZ; ulimit -f 1; ');
      assertEquals([code, text], [1, "Usage"], errors);
      assertMatch(errors, new RegExp(`^${name}: The output cannot be written \\(.+\\)\\n$`));
    }
  }));

test("help ends quietly if its reader has closed the pipe", async () => {
  const rows = [["--help", 0], ["usage --help", 0], ["usage --gate --help", 2]] as const;
  for (const name of Object.keys(PROGRAMS)) {
    for (const [words, code] of rows) {
      const result = await inShell(name, `${words} | true; exit \${PIPESTATUS[0]}`);
      assertEquals([result.code, result.errors], [code, ""], `${name} ${words}`);
    }
  }
});

test("a full disk behind standard error does not change the exit status", async () => {
  for (const name of Object.keys(PROGRAMS)) {
    const { code, errors } = await inShell(name, "usage --gate 0 2> /dev/full");
    assertEquals([code, errors], [2, ""], name);
  }
});

needing("processes")("the help of lifecycle needs no permission", async () => {
  const words = ["run", "--quiet", "--no-lock", "--no-prompt", PROGRAMS.lifecycle?.at(-1) ?? ""];
  for (const [more, code] of [[["--help"], 0], [["check", "--help"], 0], [[], 2]] as const) {
    const result = await run(fromRoot("."), Deno.execPath(), ...words, ...more);
    assertEquals(result.code, code, result.errors);
    assertMatch(result.text + result.errors, /^Usage: lifecycle /);
  }
});
