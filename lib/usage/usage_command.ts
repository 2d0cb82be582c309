/** The command that reports usage, for any program that keeps a record. */

import { Command, Option } from "commander";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { argument, numberArgument } from "../input/arguments.ts";
import type { Draft } from "../input/draft.ts";
import { printBytes, STANDARD_OUTPUT } from "../input/print.ts";
import { messageOf } from "../input/printable.ts";
import { isPartOf } from "../lifecycle/route_name.ts";
import { usageJson } from "./output/json.ts";
import { usagePage } from "./output/operator_page.ts";
import { ownerPage, type OwnerPageOptions } from "./output/owner_page.ts";
import type { ProgramNames } from "./output/phrase.ts";
import { gateText, usageText } from "./output/text.ts";
import { policiesUnder } from "./record/holds.ts";
import { announcedPolicies, judgedRoutes } from "./verdict/announcements.ts";
import {
  readAllSessions,
  type ReadSession,
  readSessions,
  type RecordSource,
} from "./verdict/evidence.ts";
import { probe, type ProbeOptions, type ProbeResult } from "./verdict/probe.ts";
import { reportUsage, type UsageReport } from "./verdict/report.ts";
import { mayBeAnybody } from "./verdict/rhythms.ts";

/** The parts of the command that each program supplies. */
interface UsageHost<Options> {
  /** Opens the records, runs an action, and closes the records. */
  readonly withSource: (
    options: Options & RecordOptions,
    action: (source: UsageSource) => Promise<void>,
  ) => Promise<void>;
  /** Prints lines to standard output. Rejects if they cannot be written. */
  readonly print: (text: string) => Promise<void>;
  /** Prints a message to standard error, after the program's name. */
  readonly printError: (text: string) => void;
}

/** The records besides the program's own. */
export interface RecordOptions {
  /** Their URLs. */
  readonly also?: string[];
}

/** What the command works on: records, and the facts that only its program knows. */
export interface UsageSource extends Omit<OwnerPageOptions, "sessions"> {
  /** The program's own record, and then others. */
  readonly records: readonly [RecordSource, ...RecordSource[]];
  readonly program: ProgramNames;
  /** How to probe the routes, if possible. */
  readonly probe?: Pick<ProbeOptions, "url" | "urlOf" | "fields"> | undefined;
  /** Opens a file for a page, before what the page says is read, which may take long. */
  readonly openFile: (name: string) => Promise<Draft>;
}

/** The period in whole days, if none is given. */
const DEFAULT_DAYS = 30;

interface RunOptions extends CommandOptions {
  /** Whether each client has to be silent for its longest pause, if that is longer. */
  readonly isByRhythm: boolean;
}

interface CommandOptions extends RecordOptions {
  readonly days: number;
  /** Without a number, `true`. */
  readonly gate?: number | true;
  readonly client?: string;
  readonly ignore?: string[];
  readonly route?: string[];
  readonly html?: string;
  readonly json?: true;
}

export function usageCommand<Options>(host: UsageHost<Options>): Command {
  const exclusive = (flags: string, description: string, conflicts: string[]) =>
    new Option(flags, description).conflicts(conflicts);
  return new Command("usage")
    .description("Report who calls the deprecated routes, and whether they can be removed.")
    .option(
      "--days <n>",
      "report on the last N whole days and today so far",
      daysArgument,
      DEFAULT_DAYS,
    )
    .addOption(
      exclusive(
        "--gate [days]",
        "print only the verdict, that on each route, and what they leave out; exit 0 if clear, 4 if clear," +
          " but announced until later, 1 if called, 3 if unknown: each client has to be silent for 30" +
          " whole days and today so far, or for its longest pause if that is longer; with DAYS, for the" +
          " last DAYS whole days and today so far",
        ["html", "days"],
      ).argParser(daysArgument),
    )
    .option(
      "--route <path>",
      'report on this route, as the report names it, and its parts, such as "/v1 for acme" of /v1;' +
        " repeatable; by default, on every deprecated one",
      (path: string, others: string[] = []) => [...others, path],
    )
    .option(
      "--ignore <client>",
      'leave out the calls of this client, as the report names it, e.g. "app curl"; repeatable',
      (name: string, others: string[] = []) => [...others, clientArgument(name)],
    )
    .option(
      "--also <url>",
      "read this record, too, as after a move to another database, or of another region: sqlite:PATH," +
        " or postgres://…; repeatable; together they make one verdict",
      (url: string, others: string[] = []) => [...others, url],
    )
    .addOption(
      exclusive(
        "--client <client>",
        "report on this client only, with nothing of the others",
        ["gate", "ignore"],
      ),
    )
    .option(
      "--html <file>",
      "write a page, to standard output if FILE is -; with --client, one to send to the client's owner",
    )
    .option("--json", "print the whole report as JSON")
    .action(async (options: CommandOptions & Options, command: Command) => {
      if (options.gate === undefined && options.ignore !== undefined) {
        command.error("error: option '--ignore <client>' needs '--gate'");
      }
      if (options.html === STANDARD_OUTPUT && options.json) {
        command.error("error: option '--html -' cannot be used with option '--json'");
      }
      const isByRhythm = options.gate === true ||
        options.gate === undefined && command.getOptionValueSource("days") === "default";
      await host.withSource(
        options,
        (source) => printReport(source, { ...options, isByRhythm }, host),
      );
    });
}

/** @throws {ExitError} With the verdict as its status, if it is the gate that was asked. */
async function printReport(
  source: UsageSource,
  options: RunOptions,
  { print, printError }: UsageHost<never>,
): Promise<void> {
  const { gate, html, json } = options;
  if (html === STANDARD_OUTPUT) {
    return await printBytes(new TextEncoder().encode(await readPage(source, options)));
  }
  if (html !== undefined) {
    await writePage(source, html, options);
    return await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
  }
  const { report } = await readReport(source, options);
  const names = namesFor(source);
  if (gate !== undefined) {
    await print(json ? usageJson(report, names) : gateText(report, names)).catch((error) =>
      printError(messageOf(error))
    );
    throw new ExitError(EXIT_STATUS[report.state]);
  }
  await print(json ? usageJson(report, names) : usageText(report, names));
}

/** Returns the names for sentences. Where the gate can probe, nothing has to be done for that. */
function namesFor({ program, probe }: UsageSource): ProgramNames {
  return probe === undefined ? program : { ...program, howToProbe: "the gate (--gate)" };
}

/** Writes a report as a page. */
async function writePage(
  source: UsageSource,
  name: string,
  options: RunOptions,
): Promise<void> {
  const file = await source.openFile(name);
  try {
    const page = await readPage(source, options);
    await file.write(new TextEncoder().encode(page));
  } catch (error) {
    await file.discard();
    throw error;
  }
  await file.close();
}

/** Reads the records, and renders a report as a page. */
async function readPage(source: UsageSource, options: RunOptions): Promise<string> {
  const { report, sessions } = await readReport(source, options);
  return options.client === undefined
    ? usagePage(report, namesFor(source))
    : ownerPage(report, { ...source, sessions });
}

/** Reads the records. For the gate, first probes if it can. */
async function readReport(
  source: UsageSource,
  { days, gate, html, route, ...options }: RunOptions,
): Promise<{ report: UsageReport; sessions: readonly ReadSession[] }> {
  const { records: sources } = source;
  // First, because it starts a process that sleeps until it is asked.
  const probed = gate === undefined ? undefined : await probeRoutes(source, route);
  const records = await readAllSessions(sources);
  const sessions = records.flatMap(({ sessions }) => sessions);
  // An owner also has to know of routes that were deleted.
  const isForOwner = html !== undefined && options.client !== undefined;
  const all = isForOwner ? Object.keys(announcedPolicies(sessions)) : undefined;
  const report = await reportUsage(sources, records, {
    ...options,
    routes: route ?? all,
    days: typeof gate === "number" ? gate : days,
    probe: probed,
  });
  return { report, sessions };
}

/** Probes routes, by default those that processes announce, if there is a way to. */
async function probeRoutes(
  { records: [own], probe: way }: UsageSource,
  asked: readonly string[] | undefined,
): Promise<ProbeResult | undefined> {
  if (way === undefined) return undefined;
  const { sessions } = await readSessions(own);
  const { holds } = await own.ledger.holds();
  const policies = policiesUnder(announcedPolicies(sessions), holds);
  const routes = asked === undefined
    ? judgedRoutes(sessions)
    : Object.keys(policies).filter((name) => asked.some((route) => isPartOf(route, name)));
  return await probe(own.ledger, { ...way, routes, policies });
}

const clientArgument = argument(
  "the name of one client, and no name that may be anybody's",
  (name) => mayBeAnybody(name) ? undefined : name,
);

const daysArgument = numberArgument("a number of days", 3_650);
