/**
 * Publishing content at a public URL. Clients are redirected there.
 *
 * Only the commands that publish and verify request the URL. They send one HEAD and one GET, because
 * either may work without the other. The server itself never requests a URL in the catalogue, so
 * nobody can aim it at addresses that only it can reach.
 */

import { type Patience, waitFor } from "../async/abort.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { parseHttpDate } from "../http/http_date.ts";
import { quoted } from "../input/printable.ts";
import { type LinkedItem, MAX_STATED } from "../storage/item.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { newToken } from "../storage/token.ts";
import { memoryBytes } from "./bytes.ts";
import { parseLocation } from "./location.ts";
import { detectMediaType, kindOf } from "./media_type.ts";
import { type PublishOptions, requireFree } from "./publish.ts";

/** The number of bytes to request and read to detect a format. */
const BEGINNING_BYTES = 64 * 1024;

const TIMEOUT_MS = 10_000;

/** The metadata of content at a URL, and options for publishing it. All are optional. */
export interface PublishUrlOptions
  extends Patience, Pick<PublishOptions, "token" | "kind" | "type" | "publishedAt"> {
  /** The timeout of each request. */
  readonly timeoutMs?: number;
  /** Called with each problem that clients will have with the URL. */
  readonly warn?: (text: string) => void;
}

interface RemoteRequestOptions extends PublishUrlOptions {
  /** The maximum number of bytes for a GET to request and read. Default: 1. */
  readonly bytes?: number;
}

/** The facts that the other server states about the content. */
type RemoteMetadata = Pick<LinkedItem, "type" | "length" | "validator">;

interface RemoteResponse {
  readonly status: number;
  readonly isSuccess: boolean;
  /** Empty unless successful. */
  readonly stated: RemoteMetadata;
  /** The first bytes of the content. Empty unless a GET was successful. */
  readonly beginning: Uint8Array<ArrayBuffer>;
}

/**
 * Publishes the content of a public URL in place.
 *
 * @throws {RefusedError} When the URL does not work for every client or has no content, its kind is
 *   unknown, or the token is taken.
 */
export async function publishUrl(
  storage: MediaStorage,
  text: string,
  options: PublishUrlOptions = {},
): Promise<LinkedItem> {
  const { token = newToken(), publishedAt = Date.now(), signal } = options;
  const location = parseLocation(text);
  await requireFree(storage, token); // fails early; the commit checks again
  const { kind, ...stated } = await examine(location, options);
  signal?.throwIfAborted();
  const item: LinkedItem = { token, kind, location, ...stated, publishedAt };
  return await storage.catalogue.add(item);
}

/** Examines a URL by HEAD and GET. What HEAD does not state is taken from GET. */
async function examine(
  location: string,
  options: PublishUrlOptions,
): Promise<Pick<LinkedItem, "kind"> & RemoteMetadata> {
  const stated = options.kind ?? kindOf(options.type);
  const head = await sendRequest("HEAD", location, options);
  const kind = stated ?? kindOf(head.stated.type);
  // Some servers state a length of 0 on every HEAD.
  const isEnough = kind !== undefined && head.isSuccess && head.stated.length !== 0;

  const bytes = isEnough ? 1 : BEGINNING_BYTES;
  const got = await sendRequest("GET", location, { ...options, bytes });
  const { status, isSuccess, beginning } = got;
  if (!isSuccess) {
    throw new RefusedError(`${quoted(location)} answers GET with ${status}; expected 200 or 206`);
  }
  if (beginning.length === 0) throw new RefusedError(`${quoted(location)} is empty`);
  if (isEnough) return { ...head.stated, kind };
  if (!head.isSuccess) {
    const warning = `answers HEAD with ${head.status}; redirected clients will get the same`;
    options.warn?.(`${quoted(location)} ${warning}`);
  }
  const { length = beginning.length < BEGINNING_BYTES ? 0 : Infinity } = got.stated;
  const content = memoryBytes(beginning, beginning.length >= length);
  const detected = () => detectMediaType(location, content, {});
  return { ...got.stated, kind: stated ?? kindOf(got.stated.type) ?? (await detected()).kind };
}

/**
 * Sends a request for the content in its original encoding.
 *
 * @throws {RefusedError} When there is no response.
 */
export async function sendRequest(
  method: "HEAD" | "GET",
  location: string,
  { signal, timeoutMs = TIMEOUT_MS, onWait, bytes = 1 }: RemoteRequestOptions,
): Promise<RemoteResponse> {
  const expiry = AbortSignal.timeout(timeoutMs);
  const range = method === "GET" ? { Range: `bytes=0-${bytes - 1}` } : undefined;
  try {
    const fetching = fetch(location, {
      method,
      headers: { "Accept-Encoding": "identity", ...range },
      signal: signal === undefined ? expiry : AbortSignal.any([signal, expiry]),
    });
    const response = await waitFor(new URL(location).host, fetching, { onWait });
    const { status, ok: isSuccess } = response;
    const beginning = await readBeginning(response, bytes);
    return { status, isSuccess, stated: isSuccess ? statedBy(response) : {}, beginning };
  } catch (error) {
    signal?.throwIfAborted();
    if (expiry.aborted) {
      const limit = `${timeoutMs / 1000} s`;
      throw new RefusedError(`${quoted(location)} did not answer ${method} within ${limit}`);
    }
    throw new RefusedError(`${quoted(location)} cannot be reached`, { cause: causeOf(error) });
  }
}

/** Returns the facts about the whole content in the fields of a successful response. */
function statedBy({ status, headers }: Response): RemoteMetadata {
  const type = storable(headers.get("Content-Type"));
  const validator = validatorIn(headers.get("ETag")) ?? validatorIn(headers.get("Last-Modified"));
  const isEncoded = (headers.get("Content-Encoding") ?? "identity") !== "identity";
  const total = status === 206
    ? /^bytes \d+-\d+\/(\d+)$/i.exec(headers.get("Content-Range") ?? "")?.[1]
    : /^\d+$/.exec(headers.get("Content-Length") ?? "")?.[0];
  const length = Number(total ?? NaN);
  return {
    ...(type === undefined ? undefined : { type }),
    ...(isEncoded || !Number.isSafeInteger(length) ? undefined : { length }),
    ...(validator === undefined ? undefined : { validator }),
  };
}

/** Returns a field value if the catalogue can store it. */
export function storable(value: string | null): string | undefined {
  const isFit = value !== null && /^[ -~]+$/.test(value) && value.length <= MAX_STATED;
  return isFit ? value : undefined;
}

/** Returns a field value if it is an ETag or a date (RFC 9110 §8.8) that the catalogue can store. */
export function validatorIn(value: string | null): string | undefined {
  const text = storable(value) ?? "";
  const isValidator = /^(?:W\/)?".*"$/.test(text) ||
    parseHttpDate(text, Date.now()) !== undefined;
  return isValidator ? text : undefined;
}

/** Reads the first bytes of a successful response, and cancels the rest. */
async function readBeginning(
  { ok, body }: Response,
  maxLength: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  if (!ok) await body?.cancel();
  else {
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= maxLength) break; // and so cancel the rest
    }
  }
  return await new Blob(chunks).bytes();
}

/** Returns why `fetch` failed, without its prefix about the request. */
function causeOf(error: unknown): unknown {
  const { cause = error } = error as Error;
  return cause instanceof Error
    ? new Error(cause.message.replace(/^error sending request .*: client error \(\w+\): /, ""))
    : cause;
}
