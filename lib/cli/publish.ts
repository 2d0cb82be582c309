/**
 * `media publish FILE`
 */

import { Command, InvalidArgumentError, Option } from "commander";
import { basename } from "node:path";
import { newToken, type Token } from "../http/token.ts";
import { parseLanguageTag } from "../language_tag.ts";
import { detectMediaType, MediaTypeError } from "../media_type.ts";
import { TokenTakenError } from "../storage/catalogue.ts";
import type { LocalStorage } from "../storage/local.ts";
import type { Kind, PublishedItem } from "../storage/storage.ts";
import { fileBytes } from "../tracks/bytes.ts";
import {
  originOf,
  pathsOf,
  print,
  RefusedError,
  type Settings,
  tokenArgument,
  toRecord,
  withStorage,
} from "./command.ts";
import { withProgress } from "./progress.ts";

/** What a publisher may say of an item; all of it has a default. */
export interface PublishOptions {
  readonly token?: Token;
  readonly kind?: Kind;
  readonly type?: string;
  readonly name?: string;
  readonly language?: string;
}

/** Builds the command. */
export function publishCommand(settings: Settings): Command {
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
      const config = settings();
      const item = await withStorage(config, (storage) => publishFile(storage, file, options));
      const urls = pathsOf(item).map((path) => originOf(config) + path);
      const entry = { state: "published", kind: item.kind, item } as const;
      if (json) return await print(JSON.stringify({ ...toRecord(item.token, entry), urls }));
      await print(`Published ${item.kind} ${item.token}`);
      for (const url of urls) await print(`  ${url}`);
      await print(`  ${item.type}, ${item.length} bytes, sha-256 ${item.digest}`);
      await print(`Try: curl -I ${urls[0]}`);
    });
}

/**
 * Publishes a file, whole or not at all. It is read once.
 *
 * @throws {RefusedError} When the file cannot be read, is neither audio nor video, or the token is
 *   taken.
 * @throws {StorageError} When storage fails.
 */
export async function publishFile(
  storage: LocalStorage,
  path: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = basename(path), language } = options;
  await requireFree(storage, token); // before any work; the commit makes sure of it
  try {
    using file = await Deno.open(path);
    const { size, isDirectory } = await file.stat();
    if (isDirectory) throw new RefusedError(`"${path}" is a folder`);
    if (size === 0) throw new RefusedError(`"${path}" is empty`);
    const detected = await detectMediaType(fileBytes(file, size), options);

    await using staged = await storage.stage(withProgress(readAll(file), { name, size }));
    return await storage.publish({
      token,
      ...detected,
      publishedAt: Date.now(),
      ...(isFileName(name) ? { name } : {}),
      ...(language === undefined ? {} : { language }),
    }, staged);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new RefusedError(`There is no file "${path}"`);
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new RefusedError(`"${path}" cannot be read`, { cause: error });
    }
    if (error instanceof MediaTypeError) throw new RefusedError(`"${path}" ${error.message}`);
    if (error instanceof TokenTakenError) throw new RefusedError(error.message);
    throw error;
  }
}

async function requireFree(storage: LocalStorage, token: Token): Promise<void> {
  const { state } = await storage.lookUp(token);
  if (state === "unknown") return;
  const history = state === "published" ? "names a published item" : "named an item before";
  throw new RefusedError(`Token "${token}" ${history}; tokens are never used twice`);
}

async function* readAll(file: Deno.FsFile): AsyncGenerator<Uint8Array> {
  await file.seek(0, Deno.SeekMode.Start);
  const chunk = new Uint8Array(256 * 1024);
  for (;;) {
    const read = await file.read(chunk);
    if (read === null) return;
    yield chunk.subarray(0, read);
  }
}

/** A name that can be offered for saving: no control characters, no path, of usual length. */
function isFileName(name: string): boolean {
  return /^[^\p{Cc}/\\]{1,255}$/u.test(name) && name !== "." && name !== "..";
}

function nameArgument(text: string): string {
  if (isFileName(text)) return text;
  throw new InvalidArgumentError("Expected a file name of 1 to 255 characters, without a path.");
}

function mediaTypeArgument(text: string): string {
  if (
    /^(audio|video)\/[\w.+-]+(; ?[\w-]+=([\w.+-]+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*$/.test(text)
  ) {
    return text;
  }
  throw new InvalidArgumentError("Expected an audio or video type, e.g. audio/mpeg.");
}

function languageArgument(text: string): string {
  const tag = parseLanguageTag(text);
  if (tag !== undefined) return tag;
  throw new InvalidArgumentError("Expected a BCP 47 language tag, e.g. en-GB.");
}
