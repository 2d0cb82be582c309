/** The command that holds routes, for any program that keeps a record. */

import { Command, Option } from "commander";
import { RefusedError, WrongUsageError } from "../errors/refused_error.ts";
import { DAY_MS, formatInstant } from "../http/timestamp.ts";
import { argument } from "../input/arguments.ts";
import { quoted } from "../input/printable.ts";
import { readInstant } from "../lifecycle/instant.ts";
import { isPartOf } from "../lifecycle/route_name.ts";
import { momentAt, type RoutePolicies } from "../lifecycle/policy.ts";
import { effectTexts } from "./output/hold_sentences.ts";
import { textOf } from "./output/phrase.ts";
import {
  endOf,
  isReason,
  MAX_HOLD_MS,
  MAX_REASON_LENGTH,
  policiesUnder,
  type RecordedHold,
} from "./record/holds.ts";
import { HEARTBEAT_INTERVAL_MS } from "./record/heartbeat_schedule.ts";
import type { Ledger } from "./record/ledger.ts";
import { plural, sessionText } from "./output/wording.ts";
import { announcedPolicies } from "./verdict/announcements.ts";
import { type ReadSession, readSessions } from "./verdict/evidence.ts";

/** The parts of the command that each program supplies. */
interface HoldHost<Options> {
  /**
   * Opens the ledger, runs an action, and closes the ledger. The action is also told for how long
   * caches may keep a response after the sunset, e.g. "CACHE_MAX_AGE".
   */
  readonly withLedger: (
    options: Options,
    action: (ledger: Ledger, cacheLifetime: string) => Promise<void>,
  ) => Promise<void>;
  /** Prints lines to standard output. Rejects if they cannot be written. */
  readonly print: (text: string) => Promise<void>;
  /** Prints a message to standard error, after the program's name. */
  readonly printError: (text: string) => void;
}

/** An instant as it was typed, and in milliseconds since the epoch. */
interface Typed {
  readonly text: string;
  readonly instant: number;
}

interface CommandOptions {
  readonly until?: Typed;
  readonly because?: string;
  readonly route?: string;
  readonly release?: true;
}

export function holdCommand<Options>(host: HoldHost<Options>): Command {
  return new Command("hold")
    .description(
      "Hold deprecated routes: until a date, they are served as if no brownout and no sunset were due." +
        " Waits for six seconds at most, and says which processes have followed. Without options, list the" +
        " holds, past ones too.",
    )
    .option(
      "--until <instant>",
      "when the hold ends, at most 90 days ahead: a date, which ends at 24:00 UTC, or an instant",
      untilArgument,
    )
    .option(
      "--because <reason>",
      "the reason, which the notice and the report show",
      becauseArgument,
    )
    .option(
      "--route <path>",
      "hold or release only this route, as the report names it, and its parts, such as" +
        ' "/v1 for acme" of /v1; by default, all routes',
    )
    .addOption(
      new Option("--release", "end the holds of --route, or all, now")
        .conflicts(["until", "because"]),
    )
    .action(async (options: CommandOptions & Options, command: Command) => {
      const { until, because, route, release } = options;
      if (until === undefined && because !== undefined) {
        command.error("error: option '--because <reason>' needs '--until <instant>'");
      }
      if (until !== undefined && because === undefined) {
        command.error("error: option '--until <instant>' needs '--because <reason>'");
      }
      await host.withLedger(options, async (ledger, cacheLifetime) => {
        const lines = until !== undefined && because !== undefined
          ? await hold(ledger, { until, because, route, cacheLifetime })
          : release
          ? await releaseHolds(ledger, route)
          : await list(ledger, route, host);
        await host.print(lines.join("\n"));
      });
    });
}

const untilArgument = argument(
  'a date like "2027-05-10", which ends at 24:00 UTC, or an instant like "2027-05-10T12:00Z"',
  (text): Typed | undefined => {
    const instant = readInstant(text);
    if (instant === undefined) return undefined;
    const isDate = /^\d{4}-\d\d-\d\d$/.test(text);
    return { text, instant: isDate ? instant + DAY_MS : instant };
  },
);

const becauseArgument = argument(
  `a reason of 1 to ${MAX_REASON_LENGTH} characters, without control characters`,
  (text) => isReason(text) ? text.trim() : undefined,
);

/** Holds a route, or all, and says what that calls off. */
async function hold(
  ledger: Ledger,
  { until: typed, because, route, cacheLifetime }: Pick<RecordedHold, "because" | "route"> & {
    readonly until: Typed;
    readonly cacheLifetime: string;
  },
): Promise<string[]> {
  const { now } = await ledger.time();
  requireUntil(typed, now);
  const until = typed.instant;
  const configured = await announcedBy(ledger);
  if (route !== undefined) requireRoute(route, configured);
  const { holds } = await ledger.holds();
  const before = policiesUnder(configured, holds);
  const recorded = await ledger.hold({ route, until, because });
  const lines = [`Held until ${formatInstant(until)} (${because}): ${routeText(recorded)}`];
  for (const name of Object.keys(configured)) {
    if (route !== undefined && !isPartOf(route, name)) continue;
    const policy = before[name];
    if (policy === undefined) continue;
    const [applied] = policiesUnder({ [name]: policy }, [recorded])[name]?.holds?.slice(-1) ?? [];
    const effects = applied === undefined ? [] : effectTexts(applied);
    if (effects.length === 0) lines.push(`${name}: no brownout and no sunset was due until then`);
    lines.push(...effects.map((effect) => `${name}: ${textOf(effect)}`));
    if (momentAt(policy, now).phase !== "removed") continue;
    lines.push(
      `${name}: caches may keep the 410 or 308 that they have stored since the sunset, ` +
        `for ${cacheLifetime}`,
    );
  }
  return [...lines, ...await followers(ledger)];
}

/** How long processes have to follow, in milliseconds: a heartbeat, and a second for its write. */
const FOLLOWING_MS = HEARTBEAT_INTERVAL_MS + 1_000;

/** Milliseconds between two looks at the processes. */
const POLL_INTERVAL_MS = 200;

/** Waits for the heartbeats of all processes, and says which have read what is on record now. */
async function followers(ledger: Ledger): Promise<string[]> {
  const { now: since } = await ledger.time(); // after the change was committed
  const deadline = performance.now() + FOLLOWING_MS;
  while (true) {
    const { sessions } = await readSessions({ ledger, name: "" });
    const running = sessions.filter(({ isOver }) => !isOver);
    const left = running.filter(({ written }) => written <= since);
    if (left.length === 0 || performance.now() >= deadline) return followersText(running, left);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

function followersText(
  running: readonly ReadSession[],
  left: readonly ReadSession[],
): string[] {
  if (running.length === 0) return ["No process reports now; each will follow when it does"];
  const followed = running.length - left.length;
  return [
    ...followed === 0
      ? []
      : [`${plural(followed, "process", "es")} ${followed === 1 ? "has" : "have"} followed`],
    ...left.map((session) =>
      `Not yet: ${textOf(sessionText(session))}, which last wrote at ${
        formatInstant(session.written)
      }`
    ),
  ];
}

/** Returns the policies that processes announce. */
async function announcedBy(ledger: Ledger): Promise<RoutePolicies> {
  const { sessions } = await readSessions({ ledger, name: "" });
  return announcedPolicies(sessions);
}

/** Releases the holds of a route, or all, and says which routes are refused again. */
async function releaseHolds(ledger: Ledger, route: string | undefined): Promise<string[]> {
  const { now } = await ledger.time();
  const { holds } = await ledger.holds();
  const lasting = holds.filter((hold) => now < endOf(hold));
  const own = lasting.filter((hold) => route === undefined || hold.route === route);
  if (own.length === 0) throw new RefusedError(nothingToRelease(route, lasting));
  const ids = await ledger.release(own.map(({ id }) => id));
  const released = own.filter(({ id }) => ids.includes(id));
  const after = policiesUnder(
    await announcedBy(ledger),
    (await ledger.holds()).holds,
  );
  const lines = released.map((hold) => `Released: ${holdLine(hold)}`);
  const concerned = Object.entries(after)
    .filter(([name]) =>
      released.some((hold) => hold.route === undefined || isPartOf(hold.route, name))
    );
  for (const [name, policy] of concerned) {
    const { phase, until } = momentAt(policy, Math.ceil(now / 1_000 + 1) * 1_000);
    if (phase === "brownout") lines.push(`${name}: in a brownout until ${formatInstant(until)}`);
    if (phase === "removed") lines.push(`${name}: removed`);
  }
  return [...lines, ...await followers(ledger)];
}

function nothingToRelease(route: string | undefined, lasting: readonly RecordedHold[]): string {
  if (route === undefined) return "No hold is in effect";
  const nothing = `No hold on ${quoted(route)} is in effect`;
  if (lasting.length === 0) return nothing;
  const held = new Set(lasting.map((hold) => hold.route));
  return held.has(undefined)
    ? `${nothing}; to release the hold on all routes, leave out --route`
    : `${nothing}; expected ${[...held].map((name = "") => quoted(name)).join(" or ")}`;
}

/** Lists the holds of a route, or all, in the order in which they began. */
async function list(
  ledger: Ledger,
  route: string | undefined,
  { printError }: HoldHost<never>,
): Promise<string[]> {
  const { holds, faults } = await ledger.holds();
  for (const fault of faults) printError(`warning: ${fault}`);
  const lines = holds.toSorted((a, b) => a.since - b.since)
    .filter((hold) =>
      route === undefined || hold.route === undefined || isPartOf(hold.route, route)
    )
    .map(holdLine);
  if (lines.length > 0) return lines;
  return [
    route === undefined ? "No hold is on record" : `No hold on ${quoted(route)} is on record`,
  ];
}

/** Formats a hold, e.g. "all routes from … to … (billing is down), released at …". */
function holdLine(hold: RecordedHold): string {
  const { since, until, because, released } = hold;
  const end = released === undefined ? "" : `, released at ${formatInstant(released)}`;
  return `${routeText(hold)} from ${formatInstant(since)} to ${formatInstant(until)} ` +
    `(${because})${end}`;
}

function routeText({ route }: Pick<RecordedHold, "route">): string {
  return route ?? "all routes";
}

function requireUntil({ text, instant }: Typed, now: number): void {
  const got = `--until ${quoted(text)}`;
  if (instant <= now) {
    throw new WrongUsageError(`${got}: expected an end after ${formatInstant(now)}, now`);
  }
  if (instant - now <= MAX_HOLD_MS) return;
  const latest = formatInstant(now + MAX_HOLD_MS);
  throw new WrongUsageError(`${got}: expected at most 90 days ahead, until ${latest}`);
}

function requireRoute(route: string, policies: RoutePolicies): void {
  if (Object.hasOwn(policies, route)) return;
  const known = Object.keys(policies).map(quoted).join(" or ");
  const expected = known === "" ? "none, since no process has announced a route yet" : known;
  throw new WrongUsageError(`--route ${quoted(route)}: expected ${expected}`);
}
