/** The command that reports usage, for any program that keeps a record. */

import { Command, Option } from "commander";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { argument, numberArgument } from "../input/arguments.ts";
import { messageOf } from "../input/printable.ts";
import { isPartOf } from "../lifecycle/route_name.ts";
import { usageJson } from "./output/json.ts";
import { usagePage } from "./output/operator_page.ts";
import { ownerPage, type OwnerPageOptions } from "./output/owner_page.ts";
import { textOf } from "./output/phrase.ts";
import { gateText, usageText } from "./output/text.ts";
import { type ProgramNames, sessionText } from "./output/wording.ts";
import { policiesUnder } from "./record/holds.ts";
import type { Ledger } from "./record/ledger.ts";
import type { Session } from "./record/records.ts";
import { announcedPolicies, judgedRoutes } from "./verdict/announcements.ts";
import { probe, type ProbeOptions, type ProbeResult } from "./verdict/probe.ts";
import { reportUsage, type UsageReport } from "./verdict/report.ts";
import { mayBeAnybody } from "./verdict/rhythms.ts";
import { readSessions, waitForHeartbeats } from "./verdict/waiting.ts";
import { formatInstant } from "../http/timestamp.ts";

/** The parts of the command that each program supplies. */
interface UsageHost<Options> {
  /** Opens the ledger, runs an action, and closes the ledger. */
  readonly withSource: (
    options: Options,
    action: (source: UsageSource) => Promise<void>,
  ) => Promise<void>;
  /** Prints lines to standard output. Rejects if they cannot be written. */
  readonly print: (text: string) => Promise<void>;
  /** Prints a message to standard error, after the program's name. */
  readonly printError: (text: string) => void;
}

/** What the command works on: a ledger, and the facts that only its program knows. */
export interface UsageSource extends Omit<OwnerPageOptions, "sessions"> {
  readonly ledger: Ledger;
  readonly program: ProgramNames;
  /** How to probe the routes, if possible. */
  readonly probe?: Pick<ProbeOptions, "url" | "urlOf" | "fields"> | undefined;
  /** Opens a file for a page, before what the page says is read, which may take long. */
  readonly openFile: (name: string) => Promise<PageFile>;
}

/** A file for a page. */
export interface PageFile {
  /** Replaces the file. If it cannot, rejects, and leaves the file as it was. */
  readonly write: (page: string) => Promise<void>;
  /** Leaves the file as it was. */
  readonly discard: () => Promise<void>;
}

/** The period in whole days, if none is given. */
const DEFAULT_DAYS = 30;

interface RunOptions extends CommandOptions {
  /** Whether each client has to be silent for its longest pause, if that is longer. */
  readonly isByRhythm: boolean;
}

interface CommandOptions {
  readonly days: number;
  /** Without a number, `true`. */
  readonly gate?: number | true;
  readonly client?: string;
  readonly ignore?: string[];
  readonly atMost?: number;
  readonly trustStops?: true;
  readonly restart?: true;
  readonly route?: string[];
  readonly html?: string;
  readonly json?: true;
}

/** The options that say what to report, and how. */
const OF_REPORTS = ["days", "gate", "route", "ignore", "atMost", "trustStops", "client", "html"];

export function usageCommand<Options>(host: UsageHost<Options>): Command {
  const exclusive = (flags: string, description: string, conflicts: string[]) =>
    new Option(flags, description).conflicts(conflicts);
  return new Command("usage")
    .description("Report who calls the deprecated routes, and whether they can be removed.")
    .option("--days <n>", "the period in whole days before today", daysArgument, DEFAULT_DAYS)
    .addOption(
      exclusive(
        "--gate [days]",
        "print only the verdicts, the first one on all routes: exit 0 if each client has been silent" +
          " for 30 whole days and today so far, or for its longest pause if that is longer; 1 if one" +
          " has not, 3 if unknown; with DAYS, all have to be silent for so many days",
        ["html", "days"],
      ).argParser(daysArgument),
    )
    .option(
      "--route <path>",
      'a route to report on, as the report names it, with each name like "/v1 for acme" of /v1;' +
        " repeatable; by default, every deprecated one",
      (path: string, others: string[] = []) => [...others, path],
    )
    .option(
      "--ignore <client>",
      'a client that does not count for the verdict, as the report names it, e.g. "app curl"; repeatable',
      (name: string, others: string[] = []) => [...others, clientArgument(name)],
    )
    .option(
      "--at-most <calls>",
      "the number of calls that the verdict allows; by default, none",
      callsArgument,
    )
    .option(
      "--trust-stops",
      "vouch for each time without a server: nothing else served, nothing was lost or restored, and no" +
        " clock was wrong; and that no caller is missing where a process ended while it answered calls," +
        " or may have served unrecorded ones",
    )
    .addOption(
      exclusive(
        "--client <client>",
        "report on this client only, with nothing of the others",
        ["gate", "ignore", "atMost"],
      ),
    )
    .option("--html <file>", "write a page; with --client, one to send to the client's owner")
    .option("--json", "print the whole report as JSON")
    .addOption(
      exclusive(
        "--restart",
        "start the record again, a day from now, for example after a backup was restored; deletes nothing",
        OF_REPORTS,
      ),
    )
    .action(async (options: CommandOptions & Options, command: Command) => {
      if (options.gate === undefined && options.ignore !== undefined) {
        command.error("error: option '--ignore <client>' needs '--gate'");
      }
      const isByRhythm = options.gate === true ||
        options.gate === undefined && command.getOptionValueSource("days") === "default";
      await host.withSource(
        options,
        (source) => runCommand(source, { ...options, isByRhythm }, host),
      );
    });
}

/** Starts the record again, or reports. */
async function runCommand(
  source: UsageSource,
  options: RunOptions,
  host: UsageHost<never>,
): Promise<void> {
  if (options.restart) await restartRecord(source, options, host);
  else await printReport(source, options, host);
}

async function restartRecord(
  { ledger }: UsageSource,
  { json }: CommandOptions,
  { print }: UsageHost<never>,
): Promise<void> {
  const started = await ledger.restart();
  await print(json ? restartJson(started) : restartText(started));
}

/** @throws {ExitError} With the verdict as its status, if it is the gate that was asked. */
async function printReport(
  source: UsageSource,
  options: RunOptions,
  { print, printError }: UsageHost<never>,
): Promise<void> {
  const { gate, html, json } = options;
  const onWait = (sessions: readonly Session[]) => {
    if (!json) {
      printError(
        `waiting for the next heartbeat of ${
          sessions.map((session) => textOf(sessionText(session))).join(", ")
        } …`,
      );
    }
  };
  if (html !== undefined) {
    await writePage(source, html, options);
    return await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
  }
  const { report } = await readReport(source, options, onWait);
  const program = namesFor(source);
  if (gate !== undefined) {
    await print(json ? usageJson(report, program) : gateText(report, program)).catch((error) =>
      printError(messageOf(error))
    );
    throw new ExitError(EXIT_STATUS[report.verdict.state]);
  }
  await print(json ? usageJson(report, program) : usageText(report, program));
}

/** Returns the names for sentences. Where the gate can probe, nothing has to be done for that. */
function namesFor({ program, probe }: UsageSource): ProgramNames {
  return probe === undefined ? program : { ...program, howToProbe: undefined };
}

/** Writes a report as a page, which waits for nobody. */
async function writePage(
  source: UsageSource,
  name: string,
  options: RunOptions,
): Promise<void> {
  const file = await source.openFile(name);
  let page: string;
  try {
    const { report, sessions } = await readReport(source, options, () => {});
    page = options.client === undefined
      ? usagePage(report, namesFor(source))
      : ownerPage(report, { ...source, sessions });
  } catch (error) {
    await file.discard();
    throw error;
  }
  await file.write(page);
}

/**
 * Reads the ledger. For the gate, first probes if it can, and waits for the servers' heartbeats; a
 * report waits for nobody.
 */
async function readReport(
  source: UsageSource,
  { days, gate, html, route, ...options }: RunOptions,
  onWait: (sessions: readonly Session[]) => void,
): Promise<{ report: UsageReport; sessions: readonly Session[] }> {
  const { ledger } = source;
  const isGate = gate !== undefined;
  await ledger.timeline(); // refuses a replica before anything is waited for
  const finishProbe = isGate ? await startProbe(source, route) : undefined;
  // The order matters: the instant comes first, then sessions and intents, and rows last. It comes after
  // the first requests of the probe, which start a server that sleeps until it is asked.
  const time = await ledger.time();
  const read = isGate
    ? await waitForHeartbeats(ledger, time, { routes: route, onWait })
    : await readSessions(ledger);
  const { sessions } = read;
  // An owner also has to know of routes that were deleted.
  const isForOwner = html !== undefined && options.client !== undefined;
  const all = isForOwner ? Object.keys(announcedPolicies(sessions)) : undefined;
  const report = await reportUsage(ledger, {
    ...options,
    routes: route === undefined ? all : withParts(route, sessions),
    days: typeof gate === "number" ? gate : days,
    now: time.now,
    ...read,
    isGate,
    probe: await finishProbe?.(),
  });
  return { report, sessions };
}

/** Starts a probe of routes, by default of those that servers announce, if there is a way to. */
async function startProbe(
  { ledger, probe: way }: UsageSource,
  routes: readonly string[] | undefined,
): Promise<(() => Promise<ProbeResult>) | undefined> {
  if (way === undefined) return undefined;
  const sessions = await ledger.sessions();
  const { holds } = await ledger.holds();
  return await probe(ledger, {
    ...way,
    routes: routes === undefined ? judgedRoutes(sessions) : withParts(routes, sessions),
    policies: policiesUnder(announcedPolicies(sessions), holds),
  });
}

/** Returns routes with all parts of them that are on record, also those that were deleted. */
function withParts(routes: readonly string[], sessions: readonly Session[]): string[] {
  const names = Object.keys(announcedPolicies(sessions));
  const parts = names.filter((name) => routes.some((route) => isPartOf(route, name)));
  return [...new Set([...routes, ...parts])];
}

const clientArgument = argument(
  "the name of one client, and no name that may be anybody's",
  (name) => mayBeAnybody(name) ? undefined : name,
);

const callsArgument = numberArgument("a number of calls", 1_000_000);

const daysArgument = numberArgument("a number of days", 3_650);

/** @param started The start of the record, in milliseconds since the epoch. */
function restartText(started: number): string {
  return `The record starts again at ${formatInstant(started)}; nothing was deleted`;
}

function restartJson(started: number): string {
  return JSON.stringify({ started: new Date(started).toISOString() });
}
