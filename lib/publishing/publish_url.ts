/**
 * Publishing what is on another server already: clients are sent there.
 */

import { TokenTakenError } from "../storage/catalogue.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import type { LinkedItem } from "../storage/storage.ts";
import { newToken } from "../storage/token.ts";
import { detectMediaType, MediaTypeError, type Stated } from "./media_type.ts";
import { quoted } from "./printable.ts";
import { type PublishOptions, RefusedError, requireFree } from "./publish.ts";
import { memoryBytes } from "./tracks/bytes.ts";

/** Bytes of the beginning that are asked for where the fields do not tell what it is. */
const BEGINNING = 64 * 1024;

/** Milliseconds for each of the two requests. */
const PATIENCE = 10_000;

/** What goes on record of content elsewhere. */
type Facts = Pick<LinkedItem, "kind" | "type" | "length" | "validator">;

/** Whether a text is the URL of something that can be published where it is. */
export function isPublicUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/**
 * Publishes the content of a public URL where it is. The URL is asked once for what goes on record:
 * by HEAD, and where that does not tell its kind, by a GET of the beginning.
 *
 * @throws {RefusedError} When it cannot be reached, is neither audio nor video, or the token is
 *   taken.
 * @throws {StorageError} When storage fails.
 * @throws What aborted the signal.
 */
export async function publishUrl(
  storage: MediaStorage,
  text: string,
  options: Pick<PublishOptions, "token" | "kind" | "type" | "signal"> = {},
): Promise<LinkedItem> {
  const { token = newToken(), signal } = options;
  const location = parseLocation(text);
  await requireFree(storage, token); // before any work; the commit makes sure of it
  try {
    const facts = await examine(location, options);
    signal?.throwIfAborted();
    const item: LinkedItem = { token, location, ...facts, publishedAt: Date.now() };
    await storage.publishLink(item);
    return item;
  } catch (error) {
    if (error instanceof MediaTypeError) {
      throw new RefusedError(`${quoted(location)} ${error.message}`);
    }
    if (error instanceof TokenTakenError) throw new RefusedError(error.message);
    throw error;
  }
}

/** Makes an absolute URL that may be shown to anybody. */
function parseLocation(text: string): string {
  if (!URL.canParse(text)) throw new RefusedError(`${quoted(text)} is not a URL`);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") {
    url.username = url.password = "";
    throw new RefusedError(`${quoted(url.href)} has to be public, without user and password`);
  }
  return url.href;
}

/** Finds out what is at a URL. */
async function examine(
  location: string,
  { kind, type, signal }: Pick<PublishOptions, "kind" | "type" | "signal">,
): Promise<Facts> {
  const head = await ask(location, { method: "HEAD" }, signal);
  await head.body?.cancel();
  const described = head.ok ? factsOf(head) : {};
  const stated = type ?? mediaType(described.type);
  if (head.ok && stated !== undefined) {
    return { ...described, ...await kindOf(new Uint8Array(), { kind, type: stated }) };
  }
  const headers = { Range: `bytes=0-${BEGINNING - 1}` };
  const get = await ask(location, { headers }, signal);
  const beginning = await readBeginning(get, location);
  if (!get.ok) throw new RefusedError(`${quoted(location)} answers ${get.status}`);
  const facts = { ...factsOf(get), ...described };
  return { ...facts, ...await kindOf(beginning, { kind, type: type ?? mediaType(facts.type) }) };
}

async function kindOf(
  beginning: Uint8Array<ArrayBuffer>,
  stated: Stated,
): Promise<Pick<Facts, "kind">> {
  const { kind } = await detectMediaType(memoryBytes(beginning), stated);
  return { kind };
}

/** A type that tells the kind by itself. */
function mediaType(type: string | undefined): string | undefined {
  return /^(audio|video)\//.test(type ?? "") ? type : undefined;
}

/** What the fields of a successful response say of the content as a whole. */
function factsOf({ status, headers }: Response): Omit<Facts, "kind"> {
  const type = headers.get("Content-Type");
  const total = status === 206
    ? /\/(\d+)$/.exec(headers.get("Content-Range") ?? "")?.[1]
    : headers.get("Content-Length");
  const length = Number(total ?? NaN);
  const validator = headers.get("ETag") ?? headers.get("Last-Modified");
  return {
    ...(type === null ? {} : { type }),
    ...(Number.isSafeInteger(length) ? { length } : {}),
    ...(validator === null ? {} : { validator }),
  };
}

/** Sends a request, as a client would that wants the content as it is. */
async function ask(
  location: string,
  request: RequestInit,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const timeout = AbortSignal.timeout(PATIENCE);
  const headers = { "Accept-Encoding": "identity", ...request.headers };
  const ends = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    return await fetch(location, { ...request, headers, signal: ends });
  } catch (cause) {
    signal?.throwIfAborted();
    throw new RefusedError(`${quoted(location)} cannot be reached`, { cause });
  }
}

/** The first bytes of content; the rest is not read. */
async function readBeginning(
  response: Response,
  location: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= BEGINNING) break; // which cancels the rest
    }
  } catch (cause) {
    throw new RefusedError(`${quoted(location)} cannot be read`, { cause });
  }
  return await new Blob(chunks).bytes();
}
