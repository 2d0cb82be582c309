/**
 * `media usage`
 */

import { Command, InvalidArgumentError } from "commander";
import { ROUTES } from "../../main.ts";
import { firstDayFor, judge, reportUsage, type Verdict } from "../lifecycle/report.ts";
import { ExitError, print, RefusedError, type Settings, withStorage } from "./command.ts";
import { usageCsv } from "./usage_csv.ts";
import { usagePage } from "./usage_page.ts";
import { usageText, verdictText } from "./usage_text.ts";

interface UsageOptions {
  readonly days: number;
  readonly gate?: number;
  readonly html?: string;
  readonly json?: true;
  readonly csv?: true;
}

/** Builds the command. */
export function usageCommand(settings: Settings): Command {
  return new Command("usage")
    .description("Report who calls the deprecated routes, and whether they can be removed.")
    .option("--days <n>", "the length of the period, which ends today", daysArgument, 30)
    .option(
      "--gate <days>",
      "only judge: exit 0 when nothing was called for so many days, 1 when" +
        " something was, 3 when that is not known",
      daysArgument,
    )
    .option("--html <file>", "write a page to send to the people who own the clients")
    .option("--json", "print all of it as JSON")
    .option("--csv", "print a line for each day, route, method, phase, status and client")
    .action(async ({ days, gate, html, json, csv }: UsageOptions) => {
      const config = settings();
      const now = Date.now();
      await withStorage(config, async ({ ledger }) => {
        const judgeDays = async (days: number) =>
          await judge(ledger.usage(dayBefore(now, days)), await ledger.watches(), { days, now });
        if (gate !== undefined) {
          const verdict = await judgeDays(gate);
          await print(
            json ? JSON.stringify({ days: gate, ...verdict }) : verdictText(verdict, gate),
          );
          throw new ExitError(STATUS[verdict.verdict]);
        }
        if (csv) {
          for await (const line of usageCsv(ledger.usage(dayBefore(now, days - 1)))) {
            await print(line);
          }
          return;
        }
        const routes = ROUTES.filter(({ isDeprecated }) => isDeprecated).map(({ path }) => path);
        const options = { routes, policy: config.policy, days, now };
        const report = await reportUsage(ledger.usage(firstDayFor(days, now)), options);
        const verdict = await judgeDays(days);
        if (html !== undefined) {
          await writePage(html, usagePage(report, verdict));
          await print(json ? JSON.stringify({ file: html }) : `Wrote ${html}`);
          return;
        }
        await print(json ? JSON.stringify({ ...report, verdict }) : usageText(report, verdict));
      });
    });
}

const STATUS: Readonly<Record<Verdict["verdict"], number>> = { clear: 0, called: 1, unknown: 3 };

/** The UTC day of the instant so many days ago. */
function dayBefore(now: number, days: number): string {
  return new Date(now - days * 86_400_000).toISOString().slice(0, 10);
}

function daysArgument(text: string): number {
  const days = Number(text);
  if (/^\d+$/.test(text) && days >= 1 && days <= 3650) return days;
  throw new InvalidArgumentError("Expected a number of days from 1 to 3650.");
}

async function writePage(file: string, html: string): Promise<void> {
  try {
    await Deno.writeTextFile(file, html);
  } catch (error) {
    throw new RefusedError(`"${file}" cannot be written`, { cause: error });
  }
}
