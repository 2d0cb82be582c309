/**
 * `media publish FILE|FOLDER|URL|OBJECT…`
 */

import { Command, InvalidArgumentError, Option } from "commander";
import { readInstant } from "../lifecycle/instant.ts";
import { parseLanguageTag } from "../publishing/language_tag.ts";
import { isPublicUrl } from "../publishing/location.ts";
import { parseMediaType } from "../publishing/media_type_name.ts";
import { isFileName, type PublishOptions } from "../publishing/publish.ts";
import { publishAll } from "../publishing/publish_all.ts";
import { isObject } from "../publishing/publish_object.ts";
import { isFolder } from "../publishing/sources.ts";
import {
  type Context,
  fromUser,
  originOf,
  printError,
  tokenArgument,
  withStorage,
} from "./command.ts";
import { interruptionSignal } from "./interruption.ts";
import { PublishProgress } from "./publish_progress.ts";
import { reportAll, reportOne } from "./publish_report.ts";

interface Options extends Omit<PublishOptions, "signal" | "watch" | "reuse"> {
  readonly again?: true;
  readonly json?: true;
}

/** Builds the command. */
export function publishCommand(context: Context): Command {
  return new Command("publish")
    .description(
      "Publish files, folders, public URLs and objects of the bucket, each file as audio or video." +
        " A source with the same content and name as a published item is skipped, except for URLs.",
    )
    .argument(
      "<file|folder|url|object...>",
      "files, which are copied; folders, with everything in them except hidden files and symbolic" +
        " links, which are published only when named; http(s) URLs, to which clients are" +
        " redirected; s3://BUCKET/KEY, published in place. After --, a name may start" +
        " with a dash",
      sourceArgument,
    )
    .option(
      "--token <uuid>",
      "publish one source under this token, a version 4 UUID; never skips",
      tokenArgument,
    )
    .addOption(new Option("--kind <kind>", "audio or video").choices(["audio", "video"]))
    .option(
      "--type <type>",
      "the media type, overriding detection; for a URL it only sets the kind",
      mediaTypeArgument,
    )
    .option(
      "--name <name>",
      "the file name offered when one source is saved (default: its own)",
      nameArgument,
    )
    .option("--language <tag>", "the language of the content, e.g. en-GB", languageArgument)
    .option(
      "--published-at <time>",
      "the time of publication, e.g. 2026-11-21T09:30:00Z (default: now)",
      instantArgument,
    )
    .option("--again", "publish again under a new token, instead of skipping")
    .option("--json", "print one JSON object per line for each source")
    .action(async (named: string[], { json, again, ...options }: Options, command: Command) => {
      const fail = (message: string): never => command.error(`error: ${message}`);
      for (const name of ["name", "language"] as const) {
        if (options[name] === undefined || !named.some(isPublicUrl)) continue;
        fail(`option '--${name}' cannot be used with a URL`);
      }
      const sources = named.map((text) =>
        isPublicUrl(text) || isObject(text) ? text : fromUser(text)
      );
      const [first = ""] = sources;
      const isOne = sources.length === 1 && (isPublicUrl(first) || !await isFolder(first));
      for (const name of ["token", "name"] as const) {
        if (options[name] === undefined || isOne) continue;
        fail(`option '--${name}' is for one file, URL or object`);
      }
      const config = context.settings();
      const { content } = config;
      const signal = interruptionSignal();
      const isReused = !again && options.token === undefined;
      await withStorage(context, config, async (storage) => {
        await using progress = new PublishProgress({ sources, content });
        const outcomes = publishAll(storage, sources, {
          ...options,
          ...(isReused ? { reuse: isOne ? "unlikely" : "likely" } : {}),
          ...(content.kind === "folder" ? { content: content.path } : {}),
          signal,
          watch: progress.watch,
          warn: (text) => printError(`media: warning: ${text}`),
        });
        const report = { progress, routes: context.routes, origin: originOf(config), json };
        await (isOne ? reportOne(outcomes, report) : reportAll(outcomes, report));
      });
    });
}

function sourceArgument(text: string, before: string[] = []): string[] {
  if (text !== "") return [...before, text];
  throw new InvalidArgumentError("Expected a file, folder, URL or object.");
}

function nameArgument(text: string): string {
  if (isFileName(text)) return text;
  throw new InvalidArgumentError(
    "Expected a file name of 1 to 255 characters, without a path or control characters.",
  );
}

function mediaTypeArgument(text: string): string {
  const type = parseMediaType(text);
  if (type !== undefined) return type;
  throw new InvalidArgumentError("Expected an audio or video type, e.g. audio/mpeg.");
}

function languageArgument(text: string): string {
  const tag = parseLanguageTag(text);
  if (tag !== undefined) return tag;
  throw new InvalidArgumentError("Expected a BCP 47 language tag, e.g. en-GB.");
}

function instantArgument(text: string): number {
  const instant = readInstant(text);
  if (instant === undefined) {
    throw new InvalidArgumentError(
      "Expected a date and time with an offset, from 1970 on, e.g. 2026-11-21T09:30:00Z.",
    );
  }
  if (instant <= Date.now()) return instant;
  // A Last-Modified in the future would have to be replaced in each response (RFC 9110 §8.8.2.1).
  throw new InvalidArgumentError(
    "It is in the future, but items are served as soon as they are published.",
  );
}
