/**
 * What the store's answers say of content.
 */

import type { ByteRange } from "../../http/byte_range.ts";
import type { ContentReference } from "../content.ts";
import { ReplacedError, StorageError } from "../storage.ts";
import type { Download, StoreResponse } from "./client.ts";

/** Content to ask for. The digest of what is in place may not be known yet. */
export type ExpectedContent =
  & Omit<ContentReference, "digest">
  & Partial<Pick<ContentReference, "digest">>;

/** How content is named in messages. */
export function nameOf({ digest, location }: Pick<ExpectedContent, "digest" | "location">): string {
  const place = location === undefined ? "" : `${location} `;
  return digest === undefined ? place.trimEnd() : `${place}content ${digest}`;
}

/** The condition that an object in place is the one that was published. */
export function conditionOf(
  { validator }: Pick<ExpectedContent, "validator">,
): Record<string, string> {
  return validator === undefined ? {} : { "If-Match": validator };
}

/**
 * Makes sure that an answer is about content as it was published: the whole, or a range of it.
 *
 * @throws {ReplacedError} When it is about other content.
 * @throws {StorageError} When it is none.
 */
export function requireUnchanged(
  content: ExpectedContent,
  response: Download | StoreResponse,
  range?: ByteRange,
): void {
  const { status, headers } = response;
  const { length, validator } = content;
  const name = nameOf(content);
  if (status === 404) throw new StorageError("bucket", `${name} is missing`);
  if (status === 412 || status === 416) throw new ReplacedError("bucket", `${name} was replaced`);
  if (status !== (range === undefined ? 200 : 206)) throw unreadable(name, response);
  const [, first, last, total] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "") ?? [];
  const size = headers.get("content-length");
  const found = range === undefined ? size : total;
  if (found === undefined || found === null) {
    throw new StorageError("bucket", `the store does not tell the length of ${name}`);
  }
  if (found !== String(length)) {
    throw new ReplacedError("bucket", `${name} has ${found} bytes instead of ${length}`);
  }
  if (validator !== undefined && headers.get("etag") !== validator) {
    throw new ReplacedError("bucket", `${name} was replaced`);
  }
  if (range === undefined) return;
  const isRange = first === String(range.first) && last === String(range.last);
  if (isRange && size === String(range.last - range.first + 1)) return;
  throw new StorageError("bucket", `the store does not give the range asked for of ${name}`);
}

export function unreadable(name: string, response: Download | StoreResponse): StorageError {
  return new StorageError("bucket", `${name} cannot be read${reasonIn(response)}`);
}

/** What a store answers that does not do what it was asked for, for a message. */
export function reasonIn(
  response: Pick<StoreResponse, "status"> & { readonly text?: string },
): string {
  const code = codeIn(response);
  return `: the store answers ${response.status}${code === undefined ? "" : ` (${code})`}`;
}

/** S3's name for an error. */
export function codeIn({ text = "" }: { readonly text?: string }): string | undefined {
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1];
}
