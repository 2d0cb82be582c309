/** What documents say of defaults, limits, exit statuses and lists, held by what the code has. */

import { assert, assertEquals } from "@std/assert";
import { EXIT_STATUS } from "../lib/errors/exit_status.ts";
import { DAY_MS } from "../lib/http/timestamp.ts";
import { FAILED } from "../lib/lifecycle/breaking.ts";
import {
  MAX_NEW_NAMES_A_DAY,
  MAX_PROBES_A_DAY,
  MAX_RELEASES,
  MAX_RELEASES_OF_CLIENT,
} from "../lib/usage/record/client_names.ts";
import { HEARTBEAT_INTERVAL_MS } from "../lib/usage/record/heartbeat_schedule.ts";
import { MAX_HOLD_MS } from "../lib/usage/record/holds.ts";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";

const test = needing("files");

const README = "README.md";
const SERVER = "lib/server/README.md";
const USAGE = "lib/usage/README.md";
const APPLICATIONS = "lib/usage/applications.md";
const FRAMEWORKS = "lib/lifecycle/frameworks.md";
const LIBRARY = "lib/lifecycle/README.md";
const FRONT = "lib/usage/front/README.md";
const PUBLISHING = "lib/publishing/README.md";

/** The value of a constant that a file does not export. */
function constantIn(file: string, name: string): number {
  const text = Deno.readTextFileSync(fromRoot(`lib/${file}`));
  const [, value] = new RegExp(`^(?:export )?const ${name} = ([\\d_]+)(?:;| \\*)`, "m")
    .exec(text) ?? [];
  assert(value !== undefined, `${file} has no constant ${name}`);
  return Number(value.replaceAll("_", ""));
}

const WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** A number as sentences have it. */
const word = (value: number) => WORDS[value] ?? value.toLocaleString("en");

/** Seconds of a constant in milliseconds, as sentences have them. */
const seconds = (file: string, name: string) => `${word(constantIn(file, name) / 1_000)} seconds`;

/** Returns each page with what it says, in one place or several, of a value. */
function said(): (readonly [page: string, ...texts: string[]])[] {
  const RETAINED = 400; // as the settings below have it
  const GATE_DAYS = constantIn("usage/usage_command.ts", "DEFAULT_DAYS");
  const HISTORY = constantIn("usage/record/ledger.ts", "HISTORY_FACTOR");
  const CLOSING = seconds("usage/record/recorder.ts", "CLOSE_MS");
  const HEARTBEAT = `every ${word(HEARTBEAT_INTERVAL_MS / 1_000)} seconds`;
  const STATUSES = [...FAILED].join(", ").replace(/, (\d+)$/, " or $1");
  return [
    [
      README,
      `record is ${GATE_DAYS} whole days old`,
      `that somebody calls (${EXIT_STATUS.called})`,
      `record (${EXIT_STATUS.unknown})`,
      `is announced (${EXIT_STATUS.announced})`,
      `within five seconds`,
    ],
    [
      USAGE,
      `silent for ${GATE_DAYS} whole days`,
      `at least ${HEARTBEAT}`,
      `for ${(RETAINED * HISTORY).toLocaleString("en")} days, if \`USAGE_DAYS\` is ${RETAINED}`,
      `records ${MAX_NEW_NAMES_A_DAY} new names a day`,
      `records ${MAX_RELEASES_OF_CLIENT} releases (or apps) of one client a day, and ` +
      `${MAX_RELEASES.toLocaleString("en")} in all`,
      `records ${MAX_PROBES_A_DAY} names of probes a day`,
      `named for ${constantIn("usage/verdict/gaps.ts", "SILENT_BEFORE_MS")} days longer`,
      `at most ${word(constantIn("usage/output/basis_sentences.ts", "MAX_OF_GATE"))} lines`,
      `latest ${word(constantIn("usage/output/gap_sentences.ts", "IN_DETAIL"))} of each`,
      `called on ${word(constantIn("usage/verdict/rhythms.ts", "MIN_DAYS"))} days or more`,
      ...Object.entries({
        [EXIT_STATUS.clear]: "clear",
        [EXIT_STATUS.called]: "called",
        [EXIT_STATUS.unknown]: "unknown",
        [EXIT_STATUS.announced]: "clear, but announced until …",
      }).map(([status, verdict]) => `| ${status} | _${verdict}_ |`),
      `| ${EXIT_STATUS.wrongUsage} | none |`,
    ],
    [
      SERVER,
      `at most ${MAX_HOLD_MS / DAY_MS} days ahead`,
      `at its start and ${HEARTBEAT}`,
      `at least a second after the first, ends the process at once`,
      `first ${word(constantIn("server/listener.ts", "DRAIN_MS") / 1_000)} of these seconds`,
    ],
    [APPLICATIONS, `\`retainDays\` (${RETAINED} by default)`, STATUSES, `for ${GATE_DAYS} days`],
    [FRAMEWORKS, `takes ${CLOSING} at most`],
    [LIBRARY, STATUSES],
    [FRONT, "| `retainDays`"],
    [PUBLISHING, `${constantIn("cli/refusals.ts", "LIMIT")} are printed`],
  ];
}

/** A page on one line, with one blank between words and cells. */
const pageAt = (path: string) => Deno.readTextFileSync(fromRoot(path)).replaceAll(/\s+/g, " ");

test("documents say the values that the code has", () => {
  const missing = said().flatMap(([page, ...texts]) =>
    texts.filter((text) => !pageAt(page).includes(text)).map((text) => `${page}: ${text}`)
  );
  assertEquals(missing, []);
});

test("README's table has every setting, with its default", async () => {
  const config = await Deno.readTextFile(fromRoot("lib/server/config.ts"));
  const settings = [...config.matchAll(/read\(\s*"([A-Z_]+)"/g)].map(([, name = ""]) => name);
  const defaults = [...config.matchAll(/read\("([A-Z_]+)", .*\.default\("?([\w.]+)"?\)/g)];
  assert(settings.length >= 8 && defaults.length >= 5, `${settings} ${defaults.length}`);
  const page = await Deno.readTextFile(fromRoot(README));
  const table = page.slice(page.indexOf("| Variable"));
  const rows = table.slice(0, table.indexOf("\n\n")).split("\n");
  const rowOf = (name: string) => rows.find((row) => row.split("|")[1]?.includes(`\`${name}\``));
  assertEquals(settings.filter((name) => !name.startsWith("AWS_") && !rowOf(name)), []);
  for (const [, name = "", value = ""] of defaults) {
    assert(rowOf(name)?.split("|")[2]?.includes(`\`${value}\``), `${name}: ${value}`);
  }
});

test("the page on usage has every metric", async () => {
  const metrics = await Deno.readTextFile(fromRoot("lib/server/metrics.ts"));
  const names = [...metrics.matchAll(/create\w+\("([\w.]+)"/g)].map(([, name = ""]) => name);
  assertEquals(names.length, 3);
  assertEquals(names.filter((name) => !pageAt(USAGE).includes(`- \`${name}\` `)), []);
});
