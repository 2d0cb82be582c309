/** The command that reports usage, for any program that keeps a record. */

import { Command, Option } from "commander";
import { StorageError } from "../errors/storage_error.ts";
import { OTHER } from "../http/user_agent.ts";
import { formatInstant, parseInstant } from "../http/timestamp.ts";
import { argument, numberArgument } from "../input/arguments.ts";
import { messageOf } from "../input/printable.ts";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { RefusedError, WrongUsageError } from "../errors/refused_error.ts";
import { describeError } from "../log/log.ts";
import { declareGone } from "./verdict/declarations.ts";
import { usageJson } from "./output/json.ts";
import type { Ledger } from "./record/ledger.ts";
import { MINUTE_MS, type Session } from "./record/records.ts";
import { ownerPage, type OwnerPageOptions } from "./output/owner_page.ts";
import { usagePage } from "./output/page.ts";
import { probe, type ProbeOptions } from "./verdict/probe.ts";
import { type ProgramNames, reportUsage } from "./verdict/report.ts";
import { sessionText } from "./record/session_name.ts";
import { capitalized } from "./output/wording.ts";
import { gateText, usageText } from "./output/text.ts";
import { announcedPolicies, judgedRoutes } from "./verdict/announcements.ts";
import { waitForReports } from "./verdict/waiting.ts";
import { endOf } from "./verdict/session_state.ts";

/** The parts of the command that each program supplies. */
interface UsageHost<Options> {
  /** Opens the record, runs an action, and closes the record. */
  readonly withRecord: (
    options: Options,
    action: (record: UsageRecord) => Promise<void>,
  ) => Promise<void>;
  /** Prints lines to standard output. Rejects if they cannot be written. */
  readonly print: (text: string) => Promise<void>;
  /** Prints a message to standard error, after the program's name. */
  readonly printError: (text: string) => void;
}

/** A record, and the facts that only its program knows. */
export interface UsageRecord extends Omit<OwnerPageOptions, "sessions"> {
  readonly ledger: Ledger;
  readonly program: ProgramNames;
  /** The number of whole days that the ledger retains, if known. */
  readonly retainDays?: number | undefined;
  /** How to probe the routes, if possible. */
  readonly probe?: Pick<ProbeOptions, "url" | "urlOf" | "fields"> | undefined;
  /** Writes a page. If it cannot, rejects, and leaves the file as it was. */
  readonly writeFile: (name: string, page: string) => Promise<void>;
}

interface CommandOptions {
  readonly days: number;
  readonly gate?: number;
  readonly client?: string;
  readonly ignore?: string[];
  readonly atMost?: number;
  readonly trustStops?: true;
  readonly gone?: string[];
  readonly ended?: number;
  readonly restart?: true;
  readonly route?: string[];
  readonly html?: string;
  readonly json?: true;
}

/** Creates the command. */
export function usageCommand<Options>(host: UsageHost<Options>): Command {
  const exclusive = (flags: string, description: string, conflicts: string[]) =>
    new Option(flags, description).conflicts(conflicts);
  return new Command("usage")
    .description("Report who calls the deprecated routes, and whether they can be removed.")
    .option("--days <n>", "the period in whole days before today", daysArgument, 30)
    .addOption(
      exclusive(
        "--gate <days>",
        "print only the verdicts, the last one on all routes: exit 0 if there were no calls in the last" +
          " DAYS whole days and today so far, 1 if there were, 3 if unknown",
        ["html", "gone", "restart", "days"],
      ).argParser(daysArgument),
    )
    .option(
      "--route <path>",
      "a route to report on, as the report names it; repeatable; by default, every deprecated one",
      (path: string, others: string[] = []) => [...others, path],
    )
    .option(
      "--ignore <client>",
      'a client that does not count for the verdict, as the report names it, e.g. "app curl"; repeatable',
      (name: string, others: string[] = []) => [...others, clientArgument(name)],
    )
    .option("--at-most <calls>", "calls that the verdict allows", callsArgument)
    .option(
      "--trust-stops",
      "vouch for each time without a server: nothing else served, nothing was restored, and no clock" +
        " was wrong",
    )
    .addOption(
      exclusive(
        "--client <client>",
        "report on this client only, with nothing of the others",
        ["gate", "gone", "restart", "ignore", "atMost"],
      ),
    )
    .option("--html <file>", "write a page; with --client, one to send to the client's owner")
    .option("--json", "print the whole report as JSON")
    .addOption(
      exclusive(
        "--gone <session...>",
        "vouch for silent sessions: their processes had ended by the time of --ended",
        ["html"],
      ),
    )
    .option(
      "--ended <time>",
      "with --gone, a time by which the processes had certainly ended, as their supervisor's log has it," +
        " e.g. 2027-06-30T09:00:00Z; or now",
      endedArgument,
    )
    .addOption(
      exclusive(
        "--restart",
        "start the record again from now, for example after a backup was restored; deletes nothing",
        ["html", "gone"],
      ),
    )
    .action(async (options: CommandOptions & Options, command: Command) => {
      if (options.gate === undefined && options.ignore !== undefined) {
        command.error("error: option '--ignore <client>' needs '--gate <days>'");
      }
      if ((options.gone === undefined) !== (options.ended === undefined)) {
        command.error("error: options '--gone <session...>' and '--ended <time>' need each other");
      }
      try {
        await host.withRecord(options, (record) => runCommand(record, options, host));
      } catch (error) {
        const isUsual = error instanceof ExitError || error instanceof WrongUsageError;
        if (options.gate === undefined || isUsual) throw error;
        const isExpected = error instanceof RefusedError || error instanceof StorageError;
        host.printError(isExpected ? messageOf(error) : describeError(error));
        throw new ExitError(EXIT_STATUS.unknown);
      }
    });
}

async function runCommand(
  record: UsageRecord,
  { days, gate, gone, ended, restart, html, json, ...options }: CommandOptions,
  { print, printError }: UsageHost<never>,
): Promise<void> {
  const { ledger, program, retainDays: usageDays } = record;
  if (gone !== undefined && ended !== undefined) {
    for (const session of await declareGone(ledger, gone, ended)) {
      await print(json ? goneJson(session) : goneText(session));
      if (session.endedBy === ended) continue;
      printError(`${sessionText(session)} had ended already, so this changes nothing`);
    }
    return;
  }
  if (restart) {
    const started = await ledger.restart(Date.now());
    const text = `The record starts again at ${formatInstant(started)}; nothing was deleted`;
    await print(json ? JSON.stringify({ started: new Date(started).toISOString() }) : text);
    return;
  }
  const onWait = (sessions: readonly Session[]) => {
    if (!json) {
      printError(`waiting for the next report of ${sessions.map(sessionText).join(", ")} …`);
    }
  };
  let finishProbe: Awaited<ReturnType<typeof probe>> | undefined;
  if (gate !== undefined && record.probe !== undefined) {
    const sessions = await ledger.sessions();
    finishProbe = await probe(ledger, {
      ...record.probe,
      routes: options.route ?? judgedRoutes(sessions),
      policies: announcedPolicies(sessions),
      howNotToProbe: program.howNotToProbe,
      onWait,
    });
  }
  const time = await ledger.time();
  const sessions = await waitForReports(ledger, time, onWait);
  // An owner also has to know of routes that were deleted.
  const isForOwner = html !== undefined && options.client !== undefined;
  const all = isForOwner ? Object.keys(announcedPolicies(sessions)) : undefined;
  const report = await reportUsage(ledger, {
    ...options,
    routes: options.route ?? all,
    days: gate ?? days,
    now: time.now,
    sessions,
    probe: await finishProbe?.(),
    canProbe: record.probe !== undefined,
    usageDays,
    program,
  });
  if (gate !== undefined) {
    await print(json ? usageJson(report) : gateText(report)).catch((error) =>
      printError(messageOf(error))
    );
    throw new ExitError(EXIT_STATUS[report.verdict.state]);
  }
  if (html !== undefined) {
    const page = options.client === undefined
      ? usagePage(report)
      : ownerPage(report, { ...record, sessions });
    await record.writeFile(html, page);
    await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
    return;
  }
  await print(json ? usageJson(report) : usageText(report));
}

/** Says how a session ended, and what that leaves unknown. */
function goneText(session: Session): string {
  const { ended, reported, endedBy } = session;
  const name = capitalized(sessionText(session));
  const by = endedBy === undefined ? "" : `, and had ended by ${formatInstant(endedBy)}`;
  const end = endOf(session);
  const loss = end > reported ? `. Calls until ${formatInstant(end)} may be missing` : "";
  return `${name} is ${ended}; it last reported at ${formatInstant(reported)}${by}${loss}`;
}

function goneJson({ id: session, process, ended, reported, endedBy }: Session): string {
  const at = (instant: number) => new Date(instant).toISOString();
  return JSON.stringify({
    session,
    process: { ...process, started: at(process.started) },
    ended,
    reported: at(reported),
    ...endedBy === undefined ? {} : { endedBy: at(endedBy) },
  });
}

const clientArgument = argument(
  `the name of one client: ${OTHER} may be anybody`,
  (name) => name === OTHER ? undefined : name,
);

const callsArgument = numberArgument("a number of calls", 1_000_000);

/** A clock elsewhere may be up to a minute ahead. */
const endedArgument = argument(
  "a time that has passed, with its offset, e.g. 2027-06-30T09:00:00Z, or now",
  (text) => {
    const now = Date.now();
    if (text === "now") return now;
    const time = text.includes(":") ? parseInstant(text) : undefined; // not the midnight of a day
    return time !== undefined && time - now < MINUTE_MS ? time : undefined;
  },
);

const daysArgument = numberArgument("a number of days", 3_650);
