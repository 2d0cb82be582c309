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

/** Where items are reached. */
interface Place {
  readonly routes: readonly Route[];
  readonly origin: string;
}

/** What a report needs to know besides the outcomes. */
export interface PublishReportOptions extends Place {
  readonly progress: PublishProgress;
  readonly json: true | undefined;
}

/** Reports on the only source that was named; what is refused is thrown. */
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
 * Reports on many sources, each as soon as it is done with, and at the end, however that comes, on
 * how many there were.
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

/** All counts on one line, and on another what was left out. */
function summarise(count: (outcome: PublishOutcome["outcome"]) => number): string {
  const done = [
    `Published ${count("published")}`,
    `skipped ${count("skipped")} (published before)`,
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

/** What is left out of folders is not printed. */
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
  const what = outcome === "published" ? "Published" : "Skipped, published before as";
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
