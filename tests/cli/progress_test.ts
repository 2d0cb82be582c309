import { assertEquals, assertMatch } from "@std/assert";
import { type Amount, describeProgress } from "../../lib/cli/progress.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing, program } from "../support/permissions.ts";

Deno.test("describeProgress() gives amounts, the average rate and the time left", () => {
  const bar = (filled: number) => "=".repeat(filled).padEnd(40, "-");
  const rows: [amount: Amount, unit: string, seconds: number, text: string][] = [
    [{ done: 0, total: 20e6 }, "bytes", 5, `${bar(0)} 0% | 0.0/20.0 MB | 0.0 MB/s`],
    [
      { done: 5e6, total: 20e6 },
      "bytes",
      2.5,
      `${bar(10)} 25% | 5.0/20.0 MB | 2.0 MB/s | 8 s left`,
    ],
    [
      { done: 30e6, total: 20e6 },
      "bytes",
      15,
      `${bar(40)} 100% | 30.0/20.0 MB | 2.0 MB/s | 0 s left`,
    ], // it has grown
    [{ done: 5e6 }, "bytes", 2.5, "5.0 MB | 2.0 MB/s"],
    [{ done: 0, total: 0 }, "items", 2, "0 items | 0 items/s"],
    [
      { done: 1_234_567, total: 5_000_000 },
      "lines",
      61.35,
      `${bar(9)} 24% | 1,234,567/5,000,000 lines | 20,123 lines/s | 3 min 8 s left`,
    ],
    [
      { done: 1, total: 36_001 },
      "items",
      1,
      `${bar(0)} 0% | 1/36,001 items | 1 items/s | 10 h 0 min left`,
    ],
    [{ done: 7, note: "a\x1b[31m\nb" }, "items", 7, "7 items | 1 items/s | a\\u001b[31m\\u000ab"],
  ];
  for (const [amount, unit, seconds, text] of rows) {
    assertEquals(describeProgress(amount, unit, seconds), text);
  }
});

/** A program that works for a while in small steps, and prints two lines meanwhile. */
const WORK = `
  import { Progress } from "${fromRoot("lib/cli/progress.ts")}";
  using progress = new Progress("items");
  for (let done = 0; done <= 300; done++) {
    progress.update({ done, total: 300, note: "item " + done });
    if (done === 200 || done === 201) await progress.aside(async () => {
      await Deno.stdout.write(new TextEncoder().encode("line " + done + "\\n"));
    });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
`;

needing("processes", LINUX, program("script"))(
  "the bar is cleared while lines are printed, and at the end",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".ts" });
    try {
      await Deno.writeTextFile(file, WORK);
      const command = `${Deno.execPath()} run --allow-all --config ${
        fromRoot("deno.json")
      } ${file}`;
      const { stdout } = await new Deno.Command("script", {
        args: ["--quiet", "--return", "--flush", "--command", command, "/dev/null"],
        stdin: "null",
      }).output();
      const shown = new TextDecoder().decode(stdout);
      assertMatch(
        shown,
        /={10,}-+ \d+% \| \d+\/300 items \| \d+ items\/s \| \d s left \| item \d+/,
      );
      assertEquals(onScreen(shown), ["line 200", "line 201", ""]);
    } finally {
      await Deno.remove(file);
    }
  },
);

/** Returns the lines left on a terminal, interpreting the few controls that a bar uses. */
function onScreen(shown: string): string[] {
  const lines = [""];
  let column = 0;
  for (const [token] of shown.replaceAll("\x1b", "␛").matchAll(/␛\[[?\d]*[a-z]|[^]/gi)) {
    const line = lines.at(-1) ?? "";
    if (token === "\r") column = 0;
    else if (token === "\n") lines.push("");
    else if (token === "␛[K") lines[lines.length - 1] = line.slice(0, column);
    else if (/^␛\[\?7[hl]$/.test(token)) continue;
    else if (token.startsWith("␛")) throw new Error(`Unexpected ${JSON.stringify(token)}`);
    else {lines[lines.length - 1] = line.padEnd(column).slice(0, column) + token +
        line.slice(++column);}
  }
  return lines;
}
