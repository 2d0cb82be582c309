import { assert, assertEquals, assertMatch } from "@std/assert";
import { describeProgress } from "../../lib/cli/progress.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing, program } from "../support/permissions.ts";

Deno.test("describeProgress() gives amounts, the rate and the time left", () => {
  const rows: [
    done: number,
    total: number | undefined,
    unit: string,
    rate: number,
    text: string,
  ][] = [
    [0, 20e6, "bytes", 0, "0% | 0.0/20.0 MB | 0.0 MB/s"],
    [5e6, 20e6, "bytes", 2e6, "25% | 5.0/20.0 MB | 2.0 MB/s | 8 s left"],
    [20e6, 20e6, "bytes", 2e6, "100% | 20.0/20.0 MB | 2.0 MB/s | 0 s left"],
    [30e6, 20e6, "bytes", 2e6, "100% | 30.0/20.0 MB | 2.0 MB/s | 0 s left"], // it has grown
    [0, 0, "bytes", 0, "100% | 0.0/0.0 MB | 0.0 MB/s"],
    [5e6, undefined, "bytes", 2e6, "5.0 MB | 2.0 MB/s"],
    [
      1234567,
      5000000,
      "records",
      20123.4,
      "24% | 1,234,567/5,000,000 records | 20,123 records/s | 3 min 8 s left",
    ],
    [1, 36001, "items", 1, "0% | 1/36,001 items | 1 items/s | 10 h 0 min left"],
    [7, undefined, "items", 0, "7 items | 0 items/s"],
  ];
  for (const [done, total, unit, rate, text] of rows) {
    assertEquals(describeProgress({ done, total, unit, rate, note: "" }).text, text);
  }
  const state = { done: 1, total: 4, unit: "items", rate: 1, note: "a\x1b[31m\nb" };
  assertEquals(describeProgress(state), {
    bar: 0.25,
    text: "25% | 1/4 items | 1 items/s | 3 s left | a\\u001b[31m\\u000ab",
  });
});

/** A program that works for a while in small steps, and prints two lines meanwhile. */
const WORK = `
  import { Progress } from "${fromRoot("lib/cli/progress.ts")}";
  using progress = new Progress({ unit: "items", total: 300 });
  for (let done = 0; done <= 300; done++) {
    progress.update(done, "item " + done);
    if (done === 200 || done === 201) await progress.aside(async () => {
      await Deno.stdout.write(new TextEncoder().encode("line " + done + "\\n"));
    });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
`;

needing("processes", LINUX, program("script"))(
  "a bar on a terminal is hidden while lines are printed, and cleared at the end",
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
      assert(
        shown.lastIndexOf("\x1b[?25h") > shown.lastIndexOf("\x1b[?25l"),
        "the cursor is shown again",
      );
    } finally {
      await Deno.remove(file);
    }
  },
);

/** Returns the lines left on a terminal, interpreting the few controls that a bar uses. */
function onScreen(shown: string): string[] {
  const lines = [""];
  let [column, saved] = [0, [0, 0]];
  let row = 0;
  for (const [token] of shown.replaceAll("\x1b", "␛").matchAll(/␛\[[?\d]*[a-z]|␛[78]|[^]/gi)) {
    const line = lines[row] ?? "";
    if (token === "\r") column = 0;
    else if (token === "\n") lines[++row] ??= "";
    else if (token === "␛7") saved = [row, column];
    else if (token === "␛8") [row, column] = saved as [number, number];
    else if (token === "␛[1G") column = 0;
    else if (token === "␛[0K" || token === "␛[K") lines[row] = line.slice(0, column);
    else if (token === "␛[2K") lines[row] = "";
    else if (/^␛\[\?(25|7)[hl]$/.test(token)) continue;
    else if (token.startsWith("␛")) throw new Error(`Unexpected ${JSON.stringify(token)}`);
    else lines[row] = line.padEnd(column).slice(0, column) + token + line.slice(++column);
  }
  return lines;
}

needing("processes")("without a terminal, lines are logged if requested", async () => {
  const script = `
    import { Progress } from "${fromRoot("lib/cli/progress.ts")}";
    import "cli-progress"; // which is loaded when it is first shown
    let now = 0;
    performance.now = () => now;
    for (const isLogged of [false, true]) {
      using progress = new Progress({ unit: "records", total: 100, isLogged });
      for (let done = 0; done <= 100; done++) {
        progress.update(done);
        now += 150;
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
  `;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--config", fromRoot("deno.json"), script],
  }).output();
  const lines = new TextDecoder().decode(stderr).split("\n");
  assertEquals(stdout.length, 0);
  assertEquals(lines.length, 3, lines.join("\n"));
  assertMatch(lines[0] ?? "", /^\d+% \| \d+\/100 records \| 7 records\/s \| \d s left$/);
  assertEquals(lines[1], "100% | 100/100 records | 7 records/s | 0 s left");
});
