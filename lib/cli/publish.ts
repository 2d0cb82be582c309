/**
 * `media publish FILE`
 */

import { Command, InvalidArgumentError, Option } from "commander";
import { parseLanguageTag } from "../publishing/language_tag.ts";
import { isFileName, publishFile, type PublishOptions } from "../publishing/publish.ts";
import { pathsOf } from "../server/route.ts";
import {
  type Context,
  fromUser,
  originOf,
  print,
  tokenArgument,
  toRecord,
  withStorage,
} from "./command.ts";
import { watchInterruption } from "./interruption.ts";
import { withProgress } from "./progress.ts";

/** Builds the command. */
export function publishCommand(context: Context): Command {
  return new Command("publish")
    .description("Publish a file, as audio or video.")
    .argument("<file>", "the file to publish; it is copied")
    .option("--token <uuid>", "publish under this token, a version 4 UUID", tokenArgument)
    .addOption(new Option("--kind <kind>", "audio or video").choices(["audio", "video"]))
    .option("--type <type>", "the media type, instead of the one detected", mediaTypeArgument)
    .option(
      "--name <name>",
      "the file name to offer for saving (default: the file's)",
      nameArgument,
    )
    .option("--language <tag>", "the language of the content, e.g. en-GB", languageArgument)
    .option("--json", "print the record as JSON")
    .action(async (file: string, { json, ...options }: PublishOptions & { json?: true }) => {
      const config = context.settings();
      const signal = watchInterruption();
      const item = await withStorage(
        context,
        config,
        (storage) =>
          publishFile(storage, fromUser(file), { ...options, signal, watch: withProgress }),
      );
      const urls = pathsOf(context.routes, item).map((path) => originOf(config) + path);
      const entry = { state: "published", kind: item.kind, item } as const;
      if (json) return await print(JSON.stringify({ ...toRecord(item.token, entry), urls }));
      await print(`Published ${item.kind} ${item.token}`);
      for (const url of urls) await print(`  ${url}`);
      await print(`  ${item.type}, ${item.length} bytes, sha-256 ${item.digest}`);
      await print(`Try: curl -I ${urls[0]}`);
    });
}

function nameArgument(text: string): string {
  if (isFileName(text)) return text;
  throw new InvalidArgumentError(
    "Expected a file name of 1 to 255 characters, without a path or control characters.",
  );
}

function mediaTypeArgument(text: string): string {
  if (
    /^(audio|video)\/[\w.+-]+(; ?[\w-]+=([\w.+-]+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*$/i.test(text)
  ) {
    return text.replace(/^[^;]*/, (type) => type.toLowerCase()); // the case of values may matter
  }
  throw new InvalidArgumentError("Expected an audio or video type, e.g. audio/mpeg.");
}

function languageArgument(text: string): string {
  const tag = parseLanguageTag(text);
  if (tag !== undefined) return tag;
  throw new InvalidArgumentError("Expected a BCP 47 language tag, e.g. en-GB.");
}
