/**
 * What `media publish` prints.
 */

import { printable } from "../publishing/printable.ts";
import { RefusedError } from "../publishing/publish.ts";
import type { PublishOutcome } from "../publishing/publish_all.ts";
import type { IgnoredSource } from "../publishing/sources.ts";
import { toRecord } from "../publishing/record.ts";
import { pathsOf, type Route } from "../server/route.ts";
import { entryOf, type LinkedItem, type PublishedItem } from "../storage/storage.ts";
import { ExitError, messageOf, print, printError } from "./command.ts";
import { InterruptedError } from "./interruption.ts";
import type { PublishProgress } from "./publish_progress.ts";

/** Where clients reach items. */
interface Place {
  readonly routes: readonly Route[];
  readonly origin: string;
}

/** What a report needs besides the outcomes. */
export interface PublishReportOptions extends Place {
  readonly progress: PublishProgress;
  readonly json: true | undefined;
}

/** Reports on a single source; throws the error if it was refused. */
export async function reportOne(
  outcomes: AsyncIterable<PublishOutcome>,
  { progress, json, ...place }: PublishReportOptions,
): Promise<void> {
  for await (const outcome of outcomes) {
    await progress.aside(async () => {
      if (json) await printJson(outcome, place);
      else if ("item" in outcome) await printItem(outcome, place);
    });
    if (outcome.outcome === "refused") throw outcome.error;
  }
}

/**
 * Reports on each of many sources as soon as it is finished, and prints the counts at the end, even
 * after an error.
 */
export async function reportAll(
  outcomes: AsyncIterable<PublishOutcome>,
  { progress, json, ...place }: PublishReportOptions,
): Promise<void> {
  const counts = new Map<PublishOutcome["outcome"], number>();
  const count = (outcome: PublishOutcome["outcome"]) => counts.get(outcome) ?? 0;
  try {
    for await (const outcome of outcomes) {
      counts.set(outcome.outcome, count(outcome.outcome) + 1);
      await progress.finish(outcome.source);
      await progress.aside(async () => {
        if (json) await printJson(outcome, place);
        else if ("item" in outcome) await print(toLine(outcome));
        if (outcome.outcome === "refused") printError(`refused    ${messageOf(outcome.error)}`);
      });
    }
    await progress.aside(async () => {
      if (json) printError(summarise(count));
      else await print(summarise(count));
    });
  } catch (cause) {
    await progress.aside(() => Promise.resolve(printError(summarise(count))));
    if (cause instanceof Deno.errors.BrokenPipe) {
      throw new RefusedError("The output cannot be written", { cause });
    }
    if (!(cause instanceof InterruptedError)) throw cause;
    printError(`media: ${cause.message}`);
    throw new ExitError(cause.status);
  }
  if (count("refused") > 0) throw new ExitError(1);
}

/** Returns the counts on one line, and what was left out on a second. */
function summarise(count: (outcome: PublishOutcome["outcome"]) => number): string {
  const done = [
    `Published ${count("published")}`,
    `skipped ${count("skipped")} (already published)`,
    `refused ${count("refused")}`,
  ];
  const left = IGNORED.filter(([outcome]) => count(outcome) > 0)
    .map(([outcome, one, many]) => `${count(outcome)} ${count(outcome) === 1 ? one : many}`);
  return done.join(", ") + (left.length === 0 ? "" : `\nLeft out: ${left.join(", ")}`);
}

const IGNORED: readonly (readonly [IgnoredSource, string, string])[] = [
  ["hidden", "hidden file or folder", "hidden files or folders"],
  ["link", "symbolic link", "symbolic links"],
  ["content", "folder with published content", "folders with published content"],
];

type Done = Extract<PublishOutcome, { outcome: "published" | "skipped" }>;

function toLine({ outcome, source, item: { token, kind } }: Done): string {
  return [outcome.padEnd("published".length), token, kind, printable(source)].join("  ");
}

/** Prints an outcome as JSON, unless it was left out of a folder. */
async function printJson(outcome: PublishOutcome, place: Place): Promise<void> {
  const { source, outcome: name } = outcome;
  if ("item" in outcome) {
    const { item } = outcome;
    const record = { ...toRecord(item.token, entryOf(item)), urls: urlsOf(item, place) };
    await print(JSON.stringify({ ...record, outcome: name, source }));
  } else if (name === "refused") {
    await print(JSON.stringify({ outcome: name, source, reason: messageOf(outcome.error) }));
  }
}

async function printItem({ outcome, item }: Done, place: Place): Promise<void> {
  const urls = urlsOf(item, place);
  const what = outcome === "published" ? "Published" : "Skipped: already published as";
  await print(`${what} ${item.kind} ${item.token}`);
  for (const url of urls) await print(`  ${url}`);
  if (!("digest" in item)) {
    const { location, type = "unknown type", length } = item;
    const size = length === undefined ? "unknown length" : `${length} bytes`;
    await print(`  307 to ${location}`);
    await print(`  ${type}, ${size}`);
    return await print(`Try: curl -IL ${urls[0]}`);
  }
  await print(`  ${item.type}, ${item.length} bytes, sha-256 ${item.digest}`);
  if (item.location !== undefined) await print(`  in place at ${item.location}`);
  await print(`Try: curl -I ${urls[0]}`);
}

function urlsOf(item: PublishedItem | LinkedItem, { routes, origin }: Place): string[] {
  return pathsOf(routes, item).map((path) => origin + path);
}
