/**
 * `media publish FILE`
 */

import { Command, InvalidArgumentError, Option } from "commander";
import { basename } from "node:path";
import { newToken, type Token } from "../storage/token.ts";
import { parseLanguageTag } from "../publishing/language_tag.ts";
import { detectMediaType, MediaTypeError } from "../publishing/media_type.ts";
import { isPrintable, quoted, withoutUnprintable } from "../publishing/printable.ts";
import { TokenTakenError } from "../storage/kv/catalogue.ts";
import type { LocalStorage } from "../storage/local.ts";
import type { Kind, PublishedItem } from "../storage/storage.ts";
import { fileBytes } from "../publishing/tracks/bytes.ts";
import {
  fromUser,
  originOf,
  pathsOf,
  print,
  RefusedError,
  type Settings,
  tokenArgument,
  toRecord,
  withStorage,
} from "./command.ts";
import { unlessAborted, watchInterruption } from "./interruption.ts";
import { withProgress } from "./progress.ts";

/** What a publisher may say of an item; all of it has a default. */
export interface PublishOptions {
  readonly token?: Token;
  readonly kind?: Kind;
  readonly type?: string;
  readonly name?: string;
  readonly language?: string;
  /** Ends the work before anything is published. */
  readonly signal?: AbortSignal;
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
      const signal = watchInterruption();
      const item = await withStorage(
        config,
        (storage) => publishFile(storage, fromUser(file), { ...options, signal }),
      );
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
 * Publishes a file, whole or not at all.
 *
 * @throws {RefusedError} When the file cannot be read, is neither audio nor video, or the token is
 *   taken.
 * @throws {StorageError} When storage fails.
 * @throws What aborted the signal.
 */
export async function publishFile(
  storage: LocalStorage,
  path: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = fileName(path), language, signal } = options;
  await requireFree(storage, token); // before any work; the commit makes sure of it
  const { file, size } = await openFile(path);
  using _file = file;
  try {
    const detected = await detectMediaType(fileBytes(file, size), options);
    const source = withProgress(readAll(file, path, signal), { name, size });
    await using staged = await storage.stage(source);
    signal?.throwIfAborted();
    return await storage.publish({
      token,
      ...detected,
      publishedAt: Date.now(),
      name,
      ...(language === undefined ? {} : { language }),
    }, staged);
  } catch (error) {
    if (error instanceof MediaTypeError) throw new RefusedError(`${quoted(path)} ${error.message}`);
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

/** Opens a file that has content; nothing else, for opening a FIFO waits for its writer. */
async function openFile(path: string): Promise<{ file: Deno.FsFile; size: number }> {
  const { size, ...info } = await readable(path, () => Deno.stat(path));
  const other = OTHERS.find(([is]) => info[is])?.[1];
  if (other !== undefined) throw new RefusedError(`${quoted(path)} is ${other}, not a file`);
  if (size === 0) throw new RefusedError(`${quoted(path)} is empty`);
  return { file: await readable(path, () => Deno.open(path)), size };
}

const OTHERS = [
  ["isDirectory", "a folder"],
  ["isFifo", "a FIFO"],
  ["isSocket", "a socket"],
  ["isCharDevice", "a device"],
  ["isBlockDevice", "a device"],
] as const;

async function* readAll(
  file: Deno.FsFile,
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  await readable(path, () => file.seek(0, Deno.SeekMode.Start));
  const chunk = new Uint8Array(256 * 1024);
  for (;;) {
    const read = await unlessAborted(readable(path, () => file.read(chunk)), signal);
    if (read === null) return;
    yield chunk.subarray(0, read);
  }
}

/** Runs an operation on the file to publish, and refuses the file when it fails. */
async function readable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) {
      throw new RefusedError(`${quoted(path)} cannot be read`, { cause });
    }
    // Bytes that are not UTF-8 have become replacement characters before any program sees them.
    const hint = path.includes("\ufffd")
      ? "; a name that is not UTF-8 cannot be given: rename the file, or give a link to it"
      : "";
    throw new RefusedError(`There is no file ${quoted(path)}${hint}`);
  }
}

/** The name of a file, made fit to be offered for saving. */
function fileName(path: string): string {
  return withoutUnprintable(basename(path)).replaceAll("\\", "_");
}

/** A name that can be offered for saving: no path, and nothing that cannot be shown. */
function isFileName(name: string): boolean {
  return /^[^/\\]{1,255}$/u.test(name) && isPrintable(name) && name !== "." && name !== "..";
}

function nameArgument(text: string): string {
  if (isFileName(text)) return text;
  throw new InvalidArgumentError(
    "Expected a file name of 1 to 255 characters, without a path or control characters.",
  );
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
