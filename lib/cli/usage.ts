/** `media usage` */

import { messageOf } from "../input/printable.ts";
import { Command, Option } from "commander";
import { OTHER } from "../http/client_name.ts";
import { parseInstant } from "../lifecycle/instant.ts";
import { formatInstant } from "../lifecycle/policy.ts";
import { deprecatedPaths } from "../server/route.ts";
import { ask } from "../report/question.ts";
import { announcedPolicies, reportUsage, waitForReports } from "../report/report.ts";
import type { Config } from "../server/config.ts";
import { StorageError } from "../storage/errors.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { declareGone, declareRestored } from "../report/declarations.ts";
import type { Verdict } from "../report/verdict.ts";
import {
  argument,
  type Context,
  EXISTING,
  ExitError,
  numberArgument,
  print,
  printError,
  withStorage,
} from "./command.ts";
import { openOutput } from "./output.ts";
import { ownPlaces } from "../publishing/own_places.ts";
import { usageJson } from "../report/json.ts";
import { ownerPage } from "../report/owner_page.ts";
import { usagePage } from "../report/page.ts";
import { gateText, usageText } from "../report/text.ts";

interface UsageOptions {
  readonly days: number;
  readonly gate?: number;
  readonly client?: string;
  readonly ignore?: string[];
  readonly atMost?: number;
  readonly trustStops?: true;
  readonly gone?: string[];
  /** The time of the backup; `true` if no server has started since. */
  readonly restored?: number | true;
  readonly html?: string;
  readonly json?: true;
}

export function usageCommand(context: Context): Command {
  const exclusive = (flags: string, description: string, conflicts: string[]) =>
    new Option(flags, description).conflicts(conflicts);
  return new Command("usage")
    .description("Report who calls the deprecated routes, and whether they can be removed.")
    .option("--days <n>", "the period in whole days before today", daysArgument, 30)
    .addOption(
      exclusive(
        "--gate <days>",
        "print only the verdict: exit 0 if there were no calls in this many whole days and today," +
          " 1 if there were, 3 if unknown",
        ["html", "gone", "restored", "days"],
      ).argParser(daysArgument),
    )
    .option(
      "--ignore <client>",
      'a client that does not count for the verdict, as the report names it, e.g. "app curl"; repeatable',
      (name: string, others: string[] = []) => [...others, clientArgument(name)],
    )
    .option("--at-most <calls>", "calls that the verdict allows", callsArgument)
    .option(
      "--trust-stops",
      "trust that nothing else served, and nothing was restored, between a server's stop, or the end" +
        " that --gone declared, and the next start",
    )
    .addOption(
      exclusive(
        "--client <client>",
        "report on this client only, with nothing of the others",
        ["gate", "gone", "restored", "ignore", "atMost"],
      ),
    )
    .option("--html <file>", "write a page; with --client, one to send to the client's owner")
    .option("--json", "print the whole report as JSON")
    .addOption(
      exclusive(
        "--gone <server...>",
        "mark silent servers as gone: they have answered nothing since their last heartbeat",
        ["html"],
      ),
    )
    .addOption(
      exclusive(
        "--restored [time]",
        "say, before the servers start, that the database was restored from a backup: what it had" +
          " counted since is unknown. If a server has started, give the time of the backup",
        ["html", "gone"],
      ).argParser(timeArgument),
    )
    .action(async (options: UsageOptions) => {
      const config = context.settings();
      try {
        await withStorage(
          config,
          EXISTING,
          (storage) => runUsage(storage, options, config, context),
        );
      } catch (error) {
        if (options.gate === undefined || !(error instanceof StorageError)) throw error;
        printError(`media: ${messageOf(error)}`);
        throw new ExitError(STATUS.unknown);
      }
    });
}

async function runUsage(
  { ledger, catalogue }: MediaStorage,
  { days, gate, gone, restored, html, json, ...options }: UsageOptions,
  config: Config,
  context: Context,
): Promise<void> {
  const { now } = await ledger.time();
  if (gone !== undefined) {
    for (const { server, until, end } of await declareGone(ledger, gone, now)) {
      const last = new Date(until).toISOString();
      const text = `Server ${server} is ${end}; its last heartbeat was at ${formatInstant(until)}`;
      await print(json ? JSON.stringify({ server, end, last }) : text);
    }
    return;
  }
  if (restored !== undefined) {
    const gap = await declareRestored(ledger, now, restored === true ? now : restored);
    const [start, end] = gap === undefined ? [] : [gap.start, gap.end].map(formatInstant);
    const text = start === undefined
      ? "No server had counted, so no call can be missing"
      : `Calls from ${start} to ${end} may be missing`;
    await print(json ? JSON.stringify({ start, end }) : text);
    return;
  }
  const { publicUrl: url, usageDays } = config;
  const routes = deprecatedPaths(context.routes);
  const policies = announcedPolicies(await ledger.heartbeats());
  const question = gate !== undefined && url !== undefined
    ? await ask({ ledger, catalogue }, { url, routes: context.routes, policies, now })
    : undefined;
  const asked = question === undefined ? now : (await ledger.time()).now;
  await waitForReports(ledger, asked, (servers) => {
    if (!json) printError(`Waiting for the next report of ${servers.join(", ")} …`);
  });
  const scope = { routes, days: gate ?? days, now: asked };
  const found = { publicUrl: question && url, hidden: await question?.(), usageDays };
  const report = await reportUsage(ledger, { ...scope, ...found, ...options });
  if (gate !== undefined) {
    const text = json ? usageJson(report) : gateText(report);
    await print(text).catch((error) => printError(`media: ${messageOf(error)}`));
    throw new ExitError(STATUS[report.verdict.verdict]);
  }
  if (html !== undefined) {
    const output = await openOutput(html, ownPlaces(config));
    const page = options.client === undefined
      ? usagePage(report)
      : ownerPage(report, context.routes, config.publicUrl);
    await output.write(new TextEncoder().encode(page)).finally(output.close);
    await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
    if (options.client !== undefined && config.publicUrl === undefined) {
      printError("media: set PUBLIC_URL to have the page name this server and link its notice");
    }
    return;
  }
  await print(json ? usageJson(report) : usageText(report));
}

const STATUS: Readonly<Record<Verdict["verdict"], number>> = { clear: 0, called: 1, unknown: 3 };

const clientArgument = argument(
  `the name of one client: ${OTHER} may be anybody`,
  (name) => name === OTHER ? undefined : name,
);

const timeArgument = argument(
  "an ISO 8601 date, or a time with its offset, e.g. 2027-01-31T04:00Z",
  parseInstant,
);

const callsArgument = numberArgument("a number of calls", 1_000_000);

const daysArgument = numberArgument("a number of days", 3_650);
