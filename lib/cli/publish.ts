/** `media publish FILE|FOLDER|URL|OBJECT…` */

import { Command, InvalidArgumentError, Option } from "commander";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { parseInstant } from "../http/timestamp.ts";
import { argument } from "../input/arguments.ts";
import { messageOf, printable } from "../input/printable.ts";
import { membersOf } from "../publishing/entry_members.ts";
import { parseLanguageTag } from "../publishing/language_tag.ts";
import { isPublicUrl, isUrl } from "../publishing/location.ts";
import { parseMediaType } from "../publishing/media_type.ts";
import {
  FILE_NAME,
  parseFileName,
  type ProgressWatcher,
  type PublishOptions,
} from "../publishing/publish.ts";
import { publishAll, type PublishOutcome } from "../publishing/publish_all.ts";
import { isFolder } from "../publishing/sources.ts";
import { storagePathsOf } from "../publishing/storage_paths.ts";
import { itemPaths } from "../server/route.ts";
import { entryOf, type LinkedItem, type PublishedItem } from "../storage/item.ts";
import {
  type Context,
  fromUser,
  requireContentOwner,
  tokenArgument,
  withStorage,
} from "./context.ts";
import { interruptionSignal } from "./interruption.ts";
import { print, printError, reportWait } from "./print.ts";
import { showProgress } from "./progress.ts";

interface Options extends Omit<PublishOptions, "signal" | "watch" | "reuse"> {
  readonly again?: true;
  readonly json?: true;
}

export function publishCommand(context: Context): Command {
  return new Command("publish")
    .description(
      "Publish files, folders, public URLs and objects of the bucket, each file as audio or video." +
        " A source with the same content and name as a published item is skipped, except for URLs.",
    )
    .argument(
      "<file|folder|url|object...>",
      "files, which are copied; folders, with everything in them (hidden files and symbolic links" +
        " only if you name them); http(s) URLs, to which clients are redirected; s3://BUCKET/KEY," +
        " published in place. After --, a name may start with a dash",
      sourceArgument,
    )
    .option(
      "--token <uuid>",
      "publish one source under this token, a version 4 UUID; nothing is skipped",
      tokenArgument,
    )
    .addOption(
      new Option("--kind <kind>", "audio or video, overriding detection").choices([
        "audio",
        "video",
      ]),
    )
    .option(
      "--type <type>",
      "the media type, overriding detection; for a URL it only sets the kind",
      argument("an audio or video type, e.g. audio/mpeg", parseMediaType),
    )
    .option(
      "--name <name>",
      "the file name offered when one source is saved (default: its own)",
      argument(FILE_NAME, parseFileName),
    )
    .option(
      "--language <tag>",
      "the language of the content, e.g. en-GB",
      argument("a BCP 47 language tag, e.g. en-GB", parseLanguageTag),
    )
    .option(
      "--published-at <time>",
      "the time of publication, e.g. 2026-11-21T09:30:00Z (default: now)",
      timeArgument,
    )
    .option("--again", "publish again under a new token, instead of skipping")
    .option("--json", "print one JSON object per line for each source")
    .action(async (named: string[], { json, again, ...options }: Options, command: Command) => {
      const fail = (message: string): never => command.error(`error: ${message}`);
      for (const name of ["name", "language"] as const) {
        if (options[name] === undefined || !named.some(isPublicUrl)) continue;
        fail(`option '--${name}' cannot be used with a URL`);
      }
      const sources = named.map((text) => isUrl(text) ? text : fromUser(text));
      const [first = ""] = sources;
      const isOne = sources.length === 1 && (isPublicUrl(first) || !await isFolder(first));
      for (const name of ["token", "name"] as const) {
        if (options[name] === undefined || isOne) continue;
        fail(`option '--${name}' is for one file, URL or object`);
      }
      const config = context.settings();
      if (!sources.every(isPublicUrl)) await requireContentOwner(config);
      const storagePaths = storagePathsOf(config);
      const signal = interruptionSignal();
      await withStorage(config, { signal }, async (storage) => {
        const outcomes = publishAll(storage, sources, {
          ...options,
          reuse: !again && options.token === undefined,
          storagePaths,
          signal,
          onWait: reportWait,
          watch,
          warn: (text) => printError(`media: warning: ${text}`),
        });
        const urlsOf = (item: PublishedItem | LinkedItem) =>
          itemPaths(context.routes, item).map((path) => (config.publicUrl ?? "") + path);
        await reportPublishing(outcomes, { urlsOf, isOne, json });
      });
    });
}

const watch: ProgressWatcher = async function* (chunks, { name, size, step }) {
  let read = 0;
  for await (const chunk of chunks) {
    yield chunk;
    read += chunk.length;
    showProgress(`${step} ${name}`, read / size);
  }
};

function sourceArgument(text: string, before: string[] = []): string[] {
  if (text !== "") return [...before, text];
  throw new InvalidArgumentError("Expected a file, folder, URL or object.");
}

const timeArgument = argument(
  "a date and time with an offset, from 1970 to now, e.g. 2026-11-21T09:30:00Z",
  (text) => {
    const instant = parseInstant(text);
    // Clocks may differ by a minute. Responses would have to replace a later Last-Modified.
    const isPast = instant !== undefined && instant >= 0 && instant <= Date.now() + 60_000;
    return isPast ? instant : undefined;
  },
);

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
async function reportPublishing(
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
