/** Interpreting the store's responses about content. */

import { unescape } from "@std/html/entities";
import { StorageError } from "../../../errors/storage_error.ts";
import type { ByteRange } from "../../../http/byte_range.ts";
import { quoted } from "../../../input/printable.ts";
import { ReplacedError } from "../../errors.ts";
import type { ContentReference } from "../../item.ts";
import type { StoreResponse } from "./client.ts";

/** Content to request. The digest of an object to publish in place is not known yet. */
export type ExpectedContent =
  & Omit<ContentReference, "digest">
  & Partial<Pick<ContentReference, "digest">>;

/** The parts of a response that tell why it is an error. */
type ErrorResponse = Pick<StoreResponse, "status" | "headers" | "text">;

/** Names content in messages. */
export function nameOf({ digest, location }: Pick<ExpectedContent, "digest" | "location">): string {
  const place = location === undefined ? "" : `${quoted(location)} `;
  return digest === undefined ? place.trimEnd() : `${place}content ${digest}`;
}

/** Returns the precondition that an object is still the one that was published. */
export function conditionOf(
  { validator }: Pick<ExpectedContent, "validator">,
): Record<string, string> {
  return validator === undefined ? {} : { "If-Match": validator };
}

/**
 * Returns a fault if a response does not give the content, or the range of it, as it was published.
 * The fault is a {@linkcode ReplacedError} if the content was replaced.
 */
export function faultIn(
  response: StoreResponse,
  content: ExpectedContent,
  range?: ByteRange,
): StorageError | undefined {
  const { status, headers } = response;
  const { length, validator } = content;
  const name = nameOf(content);
  if (status === 404) return new StorageError("bucket", `${name} is missing`, { kind: "missing" });
  const replaced = () => new ReplacedError("bucket", `${name} was replaced`, { kind: "replaced" });
  if (status === 412 || status === 416) return replaced();
  if (status !== (range === undefined ? 200 : 206)) return readFault(name, response);
  const [, first, last, total] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "") ?? [];
  const size = headers.get("content-length");
  const found = range === undefined ? size : total;
  if (found === undefined || found === null) {
    return new StorageError("bucket", `the store does not state the length of ${name}`, {
      kind: "no length",
    });
  }
  if (found !== String(length)) {
    return new ReplacedError("bucket", `${name} has ${found} bytes instead of ${length}`, {
      kind: "another length",
    });
  }
  if (validator !== undefined && headers.get("etag") !== validator) {
    return replaced();
  }
  if (range === undefined) return undefined;
  const isRange = first === String(range.first) && last === String(range.last);
  if (isRange && size === String(range.last - range.first + 1)) return undefined;
  return new StorageError("bucket", `the store does not send the requested range of ${name}`, {
    kind: "no range",
  });
}

/** Storage classes of Amazon S3 whose objects can be read at once, unless a field says otherwise. */
const READABLE_CLASSES = new Set([
  ...["STANDARD", "STANDARD_IA", "ONEZONE_IA", "REDUCED_REDUNDANCY"],
  ...["EXPRESS_ONEZONE", "INTELLIGENT_TIERING"],
]);

/**
 * Returns whether a response to HEAD leaves open whether the object can be read, because it names
 * an archive, or a storage class of another store. Some archives can be read at once; in the others
 * a HEAD is 200 as well, and only a GET fails.
 */
export function mayBeArchived({ headers }: Pick<StoreResponse, "headers">): boolean {
  const storageClass = headers.get("x-amz-storage-class") ?? "STANDARD"; // which Amazon leaves out
  return !READABLE_CLASSES.has(storageClass) || headers.has("x-amz-archive-status") ||
    headers.has("x-amz-restore");
}

export function readFault(name: string, response: StoreResponse): StorageError {
  const kind = `cannot be read${reasonIn(response)}`;
  return new StorageError("bucket", `${name} ${kind}`, { kind });
}

/** Describes an unexpected response of the store, for a message. */
export function reasonIn(response: ErrorResponse): string {
  const code = codeIn(response);
  return `: the store answers ${response.status}${code === undefined ? "" : ` (${code})`}` +
    remedyIn(response);
}

/** Names the region of the bucket, or the endpoint that the store asks for, where it says so. */
function remedyIn({ status, headers, text }: ErrorResponse): string {
  if (![301, 307, 400].includes(status)) return "";
  const region = headers.get("x-amz-bucket-region") ?? /<Region>([^<]+)</.exec(text)?.[1];
  if (region) return `; the bucket is in the region ${quoted(unescape(region))} (AWS_REGION)`;
  const endpoint = /<Endpoint>([^<]+)</.exec(text)?.[1] ??
    URL.parse(headers.get("location") ?? "")?.host;
  return endpoint ? `; it asks for the endpoint ${quoted(unescape(endpoint))}` : "";
}

/** Returns S3's error code, if there is one. */
export function codeIn({ text }: Pick<StoreResponse, "text">): string | undefined {
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1];
}
