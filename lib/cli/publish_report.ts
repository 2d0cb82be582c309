/** The output of `media publish`. */

import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { messageOf, printable } from "../input/printable.ts";
import { membersOf } from "../publishing/entry_members.ts";
import type { PublishOutcome } from "../publishing/publish_all.ts";
import { entryOf, type LinkedItem, type PublishedItem } from "../storage/item.ts";
import { print, printError } from "./print.ts";

interface PublishReportOptions {
  /** Returns the URLs of an item, or its paths if the public URL is not set. */
  readonly urlsOf: (item: PublishedItem | LinkedItem) => string[];
  /** Whether there is only one source. Its item is described, and needs no summary. */
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
  const counts: Counts = { published: 0, skipped: 0, refused: 0, omitted: 0 };
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
    if (isComplete && !isOne && !json) await print(summaryOf(counts));
    else if (!isOne) printError(summaryOf(counts));
  }
  if (counts.refused > 0) throw new ExitError(EXIT_STATUS.refused);
}

type Counts = Record<PublishOutcome["outcome"], number>;

function summaryOf({ published, skipped, refused, omitted }: Counts): string {
  const left = omitted === 0 ? "" : `, left out ${omitted} (hidden, links, or storage)`;
  return `Published ${published}, skipped ${skipped} (already published), refused ${refused}${left}`;
}

type Done = Extract<PublishOutcome, { outcome: "published" | "skipped" }>;

function toLine({ outcome, source, item: { token, kind } }: Done): string {
  return [outcome.padEnd("published".length), token, kind, printable(source)].join("  ");
}

/** Returns the object to print as JSON; `undefined` for a file left out of a folder. */
function toObject(outcome: PublishOutcome, urlsOf: PublishReportOptions["urlsOf"]) {
  const { source, outcome: name } = outcome;
  if (name === "refused") return { outcome: name, source, reason: messageOf(outcome.error) };
  if (!("item" in outcome)) return undefined;
  const { item } = outcome;
  return { ...membersOf(item.token, entryOf(item)), urls: urlsOf(item), outcome: name, source };
}

function itemText({ outcome, item }: Done, urls: readonly string[]): string {
  const what = outcome === "published" ? "Published" : "Skipped: already published as";
  const { kind, token, location, type = "unknown type", length } = item;
  const size = length === undefined ? "unknown length" : `${length} bytes`;
  const isStored = "digest" in item;
  return [
    `${what} ${kind} ${token}`,
    ...urls.map((url) => `  ${url}`),
    `  ${type}, ${size}${isStored ? `, sha-256 ${item.digest}` : ""}`,
    ...location === undefined ? [] : [`  ${isStored ? "in place at" : "307 to"} ${location}`],
    ...urls[0]?.startsWith("/") ? [] : [`Try: curl ${isStored ? "-I" : "-IL"} ${urls[0]}`],
  ].join("\n");
}
