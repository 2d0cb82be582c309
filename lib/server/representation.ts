/**
 * What the server says about what it serves (RFC 9110 §8), in the two groups that §15.4.5 tells
 * apart: a 304 carries the validators only.
 */

import type { PublishedItem, Storage } from "../storage/storage.ts";
import type { Content, Field } from "../http/answer.ts";
import type { ByteRange } from "../http/byte_range.ts";
import { inlineDisposition } from "../http/content_disposition.ts";
import { formatHttpDate } from "../http/http_date.ts";
import type { Validators } from "../http/preconditions.ts";

/** Something to serve, as HTTP sees it. */
export interface Representation extends Validators {
  /** Bytes. */
  readonly length: number;
  /** ETag, and what else a 304 has to say. */
  readonly validatorFields: readonly Field[];
  /** What describes the content, but for its length, which a part of it does not share. */
  readonly contentFields: readonly Field[];
  /** The content, or a range of it. */
  readonly content: (range?: ByteRange) => Content;
}

const RANGES: Field = ["Accept-Ranges", "bytes"];
const NO_SNIFFING: Field = ["X-Content-Type-Options", "nosniff"];

/**
 * Represents an item.
 *
 * @param storage Opens its content, for a GET.
 * @param now Milliseconds since the epoch. No date later than this is stated (RFC 9110
 *   §8.8.2.1), should the clock of the machine that published be ahead.
 */
export function representItem(item: PublishedItem, storage: Storage, now: number): Representation {
  const { digest, length, type, language, name } = item;
  const lastModified = Math.floor(Math.min(item.publishedAt, now) / 1000) * 1000;
  const contentFields: Field[] = [["Content-Type", type]];
  if (language !== undefined) contentFields.push(["Content-Language", language]);
  if (name !== undefined) contentFields.push(["Content-Disposition", inlineDisposition(name)]);
  contentFields.push(RANGES, ["Repr-Digest", reprDigest(digest)], NO_SNIFFING);
  return {
    length,
    etag: { weak: false, opaque: digest },
    lastModified,
    validatorFields: [["ETag", `"${digest}"`], ["Last-Modified", formatHttpDate(lastModified)]],
    contentFields,
    content: (range) => () => storage.open(item, range),
  };
}

/** The fields that tell the whole (200) from a part (206). */
export function lengthFields(length: number, range: ByteRange | undefined): Field[] {
  if (range === undefined) return [["Content-Length", String(length)]];
  return [
    ["Content-Length", String(range.last - range.first + 1)],
    ["Content-Range", `bytes ${range.first}-${range.last}/${length}`],
  ];
}

/** The value of Repr-Digest (RFC 9530 §3), from a SHA-256 in hexadecimal digits. */
export function reprDigest(hex: string): string {
  digestBytes.setFromHex(hex);
  return `sha-256=:${digestBytes.toBase64()}:`;
}

/** Used again and again: allocating a buffer takes longer than the rest. */
const digestBytes = new Uint8Array(32);
