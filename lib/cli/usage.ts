/** `media usage` */

import { messageOf } from "../input/printable.ts";
import { Command, Option } from "commander";
import { OTHER } from "../http/client_name.ts";
import { formatInstant } from "../lifecycle/policy.ts";
import { pathOf, withToken } from "../server/route.ts";
import { probe } from "../report/probe.ts";
import { announcedPolicies, judgedRoutes, reportUsage, waitForReports } from "../report/report.ts";
import type { Config } from "../server/config.ts";
import { StorageError } from "../storage/errors.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { declareGone } from "../report/declarations.ts";
import type { Kind } from "../storage/item.ts";
import { newToken } from "../storage/token.ts";
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
  readonly restart?: true;
  readonly route?: string[];
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
        ["html", "gone", "restart", "days"],
      ).argParser(daysArgument),
    )
    .option(
      "--route <path>",
      'a route to report on, e.g. "/audio/:token"; repeatable; by default, every deprecated one',
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
        "vouch for silent sessions: their processes no longer run, and answered nothing after their" +
          " last report",
        ["html"],
      ),
    )
    .addOption(
      exclusive(
        "--restart",
        "start the record again from now, for example after a backup was restored; deletes nothing",
        ["html", "gone"],
      ),
    )
    .action(async (options: UsageOptions, command: Command) => {
      if (options.gate === undefined && options.ignore !== undefined) {
        command.error("error: option '--ignore <client>' needs '--gate <days>'");
      }
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
  { days, gate, gone, restart, html, json, ...options }: UsageOptions,
  config: Config,
  context: Context,
): Promise<void> {
  if (gone !== undefined) {
    for (const { id, reported, ended } of await declareGone(ledger, gone)) {
      const last = new Date(reported).toISOString();
      const text = `Session ${id} is ${ended}; its last report was at ${formatInstant(reported)}`;
      await print(json ? JSON.stringify({ session: id, ended, reported: last }) : text);
    }
    return;
  }
  if (restart) {
    const started = await ledger.restart();
    const text = `The record starts again at ${formatInstant(started)}; nothing was deleted`;
    await print(json ? JSON.stringify({ started: new Date(started).toISOString() }) : text);
    return;
  }
  const { publicUrl: url, usageDays } = config;
  const onWait = (sessions: readonly string[]) => {
    if (!json) printError(`Waiting for the next report of ${sessions.join(", ")} …`);
  };
  const evaluate = gate === undefined || url === undefined
    ? undefined
    : await probeRoutes({ ledger, catalogue }, url, { context, onWait, routes: options.route });
  const asked = await ledger.time();
  const sessions = await waitForReports(ledger, asked, onWait);
  const report = await reportUsage(ledger, {
    ...options,
    routes: options.route,
    days: gate ?? days,
    now: asked.now,
    sessions,
    probe: await evaluate?.(),
    usageDays,
    command: COMMAND,
  });
  if (gate !== undefined) {
    const text = json ? usageJson(report) : gateText(report);
    await print(text).catch((error) => printError(`media: ${messageOf(error)}`));
    throw new ExitError(STATUS[report.verdict.verdict]);
  }
  if (html !== undefined) {
    const output = await openOutput(html, ownPlaces(config));
    const page = options.client === undefined
      ? usagePage(report)
      : ownerPage(report, context.routes, config);
    await output.write(new TextEncoder().encode(page)).finally(output.close);
    await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
    if (options.client !== undefined && config.publicUrl === undefined) {
      printError("media: set PUBLIC_URL to have the page name this server and link its notice");
    }
    return;
  }
  await print(json ? usageJson(report) : usageText(report));
}

/** How messages name this command. */
const COMMAND = "deno task media usage";

/** Probes the deprecated routes through the public URL: each by its shortest item. */
async function probeRoutes(
  { ledger, catalogue }: Pick<MediaStorage, "ledger" | "catalogue">,
  url: string,
  { context, onWait, routes }: {
    readonly context: Context;
    readonly onWait: (sessions: readonly string[]) => void;
    readonly routes: readonly string[] | undefined;
  },
) {
  const sessions = await ledger.sessions();
  const kinds = new Map(context.routes.map((route) => [pathOf(route), route.serves]));
  return await probe(ledger, {
    url,
    routes: routes ?? judgedRoutes(sessions),
    policies: announcedPolicies(sessions),
    async urlOf(route, phase) {
      const serves = kinds.get(route) as readonly Kind[] | undefined;
      if (serves === undefined) return undefined;
      const token = phase === "removed" // when any token counts
        ? newToken()
        : await catalogue.shortestPublished(serves);
      return token && url + withToken(route, token);
    },
    onWait,
  });
}

const STATUS: Readonly<Record<Verdict["verdict"], number>> = { clear: 0, called: 1, unknown: 3 };

const clientArgument = argument(
  `the name of one client: ${OTHER} may be anybody`,
  (name) => name === OTHER ? undefined : name,
);

const callsArgument = numberArgument("a number of calls", 1_000_000);

const daysArgument = numberArgument("a number of days", 3_650);
