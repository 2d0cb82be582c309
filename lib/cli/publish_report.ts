/** What `media publish` prints. */

import { messageOf, printable } from "../input/printable.ts";
import type { PublishOutcome } from "../publishing/publish_all.ts";
import type { IgnoredSource } from "../publishing/sources.ts";
import { toRecord } from "../publishing/record.ts";
import { entryOf, type LinkedItem, type PublishedItem } from "../storage/item.ts";
import { ExitError, print, printError } from "./command.ts";

export interface PublishReportOptions {
  /** Returns where clients reach an item. */
  readonly urlsOf: (item: PublishedItem | LinkedItem) => string[];
  /** Whether there is only one source: its item is described, and needs no summary. */
  readonly isOne: boolean;
  readonly json: true | undefined;
}

/**
 * Reports on each source as soon as it is finished, and prints the counts at the end, even after an
 * error.
 *
 * @throws {ExitError} When a source was refused.
 */
export async function reportPublishing(
  outcomes: AsyncIterable<PublishOutcome>,
  { urlsOf, isOne, json }: PublishReportOptions,
): Promise<void> {
  const counts: Counts = { published: 0, skipped: 0, refused: 0, hidden: 0, link: 0, content: 0 };
  let isComplete = false;
  try {
    for await (const outcome of outcomes) {
      counts[outcome.outcome]++;
      if (json) {
        const object = toObject(outcome, urlsOf);
        if (object !== undefined) await print(JSON.stringify(object));
      } else if ("item" in outcome) {
        await print(isOne ? itemText(outcome, urlsOf(outcome.item)) : toLine(outcome));
      }
      if (outcome.outcome === "refused") {
        printError(`${isOne ? "media:" : "refused   "} ${messageOf(outcome.error)}`);
      }
    }
    isComplete = true;
  } finally {
    if (isComplete && !isOne && !json) await print(summarise(counts));
    else if (!isOne) printError(summarise(counts));
  }
  if (counts.refused > 0) throw new ExitError(1);
}

type Counts = Record<PublishOutcome["outcome"], number>;

/** Returns the counts on one line, and what was left out on a second. */
function summarise(counts: Counts): string {
  const { published, skipped, refused } = counts;
  const left = IGNORED.filter((what) => counts[what] > 0).map((what) => `${counts[what]} ${what}`);
  return `Published ${published}, skipped ${skipped} (already published), refused ${refused}` +
    (left.length === 0 ? "" : `\nLeft out: ${left.join(", ")}`);
}

/** What was left out of folders: hidden files and folders, symbolic links, content of storage. */
const IGNORED: readonly IgnoredSource[] = ["hidden", "link", "content"];

type Done = Extract<PublishOutcome, { outcome: "published" | "skipped" }>;

function toLine({ outcome, source, item: { token, kind } }: Done): string {
  return [outcome.padEnd("published".length), token, kind, printable(source)].join("  ");
}

/** Returns what is printed as JSON: nothing of what was left out of a folder. */
function toObject(outcome: PublishOutcome, urlsOf: PublishReportOptions["urlsOf"]) {
  const { source, outcome: name } = outcome;
  if (name === "refused") return { outcome: name, source, reason: messageOf(outcome.error) };
  if (!("item" in outcome)) return undefined;
  const { item } = outcome;
  return { ...toRecord(item.token, entryOf(item)), urls: urlsOf(item), outcome: name, source };
}

function itemText({ outcome, item }: Done, urls: readonly string[]): string {
  const what = outcome === "published" ? "Published" : "Skipped: already published as";
  const lines = [`${what} ${item.kind} ${item.token}`, ...urls.map((url) => `  ${url}`)];
  if ("digest" in item) {
    lines.push(`  ${item.type}, ${item.length} bytes, sha-256 ${item.digest}`);
    if (item.location !== undefined) lines.push(`  in place at ${item.location}`);
    lines.push(`Try: curl -I ${urls[0]}`);
  } else {
    const { location, type = "unknown type", length } = item;
    lines.push(`  307 to ${location}`);
    lines.push(`  ${type}, ${length === undefined ? "unknown length" : `${length} bytes`}`);
    lines.push(`Try: curl -IL ${urls[0]}`);
  }
  return lines.join("\n");
}
