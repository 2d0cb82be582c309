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

/** Returns the length of an object in bytes, if a response with content of it states it. */
export function lengthIn(
  { status, headers }: Pick<StoreResponse, "status" | "headers">,
): number | undefined {
  const stated = status === 206
    ? /^bytes \d+-\d+\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1]
    : headers.get("content-length");
  return stated === null || stated === undefined ? undefined : Number(stated);
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
  const found = lengthIn(response);
  // Of a range, the total may be unknown (RFC 9110 §14.4).
  if (found === undefined && range === undefined) {
    return new StorageError("bucket", `the store does not state the length of ${name}`, {
      kind: "no length",
    });
  }
  if (found !== undefined && found !== length) {
    return new ReplacedError("bucket", `${name} has ${found} bytes instead of ${length}`, {
      kind: "another length",
    });
  }
  if (validator !== undefined && headers.get("etag") !== validator) {
    return replaced();
  }
  if (range === undefined) return undefined;
  const [, first, last] =
    /^bytes (\d+)-(\d+)\/(?:\d+|\*)$/.exec(headers.get("content-range") ?? "") ??
      [];
  const isRange = first === String(range.first) && last === String(range.last);
  const size = headers.get("content-length");
  if (isRange && size === String(range.last - range.first + 1)) return undefined;
  return new StorageError("bucket", `the store does not send the requested range of ${name}`, {
    kind: "no range",
  });
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

/**
 * Names a clock that is wrong, the region of the bucket, or the endpoint that the store asks for,
 * where the store says so.
 */
function remedyIn({ status, headers, text }: ErrorResponse): string {
  if (codeIn({ text }) === "RequestTimeTooSkewed") {
    // In minutes, because the reason tells faults of one kind from others.
    const ahead = Math.round((Date.now() - Date.parse(headers.get("date") ?? "")) / 60_000);
    const order = ahead > 0 ? "ahead of" : "behind";
    return ahead // not a number without the store's date
      ? `; this machine's clock is ${
        Math.abs(ahead).toLocaleString("en")
      } minutes ${order} the store's`
      : "; this machine's clock differs from the store's";
  }
  if (![301, 307, 400].includes(status)) return "";
  const region = headers.get("x-amz-bucket-region") ?? /<Region>([^<]+)</.exec(text)?.[1];
  if (region) return `; the bucket is in the region ${quoted(unescape(region))} (AWS_REGION)`;
  const endpoint = /<Endpoint>([^<]+)</.exec(text)?.[1] ??
    URL.parse(headers.get("location") ?? "")?.host;
  return endpoint ? `; it asks for the endpoint ${quoted(unescape(endpoint))}` : "";
}

/** Returns S3's error code, if there is one. */
export function codeIn({ text }: Pick<StoreResponse, "text">): string | undefined {
  return /<Code>([\w.]+)<\/Code>/.exec(text)?.[1];
}
