/**
 * `media publish FILE|URL|OBJECT`
 */

import { Command, InvalidArgumentError, Option } from "commander";
import { parseLanguageTag } from "../publishing/language_tag.ts";
import { isFileName, publishFile, type PublishOptions } from "../publishing/publish.ts";
import { isPublicUrl } from "../publishing/location.ts";
import { printableLines } from "../publishing/printable.ts";
import { isObject, publishObject } from "../publishing/publish_object.ts";
import { publishUrl } from "../publishing/publish_url.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import { entryOf, type LinkedItem, type PublishedItem } from "../storage/storage.ts";
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

type Options = Omit<PublishOptions, "signal" | "watch"> & { readonly json?: true };

/** Builds the command. */
export function publishCommand(context: Context): Command {
  return new Command("publish")
    .description("Publish a file, a public URL or an object of the bucket, as audio or video.")
    .argument(
      "<file|url|object>",
      "the file to publish, which is copied; the http(s) URL to redirect clients to; or" +
        " s3://BUCKET/KEY, which is published where it is",
    )
    .option("--token <uuid>", "publish under this token, a version 4 UUID", tokenArgument)
    .addOption(new Option("--kind <kind>", "audio or video").choices(["audio", "video"]))
    .option(
      "--type <type>",
      "the media type, instead of the one detected; of a URL it tells the kind, no more",
      mediaTypeArgument,
    )
    .option(
      "--name <name>",
      "the file name to offer for saving (default: the file's)",
      nameArgument,
    )
    .option("--language <tag>", "the language of the content, e.g. en-GB", languageArgument)
    .option("--json", "print the record as JSON")
    .action(async (source: string, { json, ...options }: Options, command: Command) => {
      const isUrl = isPublicUrl(source);
      for (const name of ["name", "language"] as const) {
        if (!isUrl || options[name] === undefined) continue;
        command.error(`error: option '--${name}' cannot be used with a URL`);
      }
      const config = context.settings();
      const signal = watchInterruption();
      const work = { ...options, signal, watch: withProgress };
      const publish = (storage: MediaStorage): Promise<PublishedItem | LinkedItem> =>
        isUrl
          ? publishUrl(storage, source, { ...options, signal, warn })
          : isObject(source)
          ? publishObject(storage, source, work)
          : publishFile(storage, fromUser(source), work);
      const item = await withStorage(context, config, publish);
      const urls = pathsOf(context.routes, item).map((path) => originOf(config) + path);
      if (json) {
        return await print(JSON.stringify({ ...toRecord(item.token, entryOf(item)), urls }));
      }
      await print(`Published ${item.kind} ${item.token}`);
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
    });
}

function warn(text: string): void {
  console.error(`media: warning: ${printableLines(text)}`);
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
