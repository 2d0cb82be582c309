/**
 * What the server says about a published item (RFC 9110 §8), in the two groups that §15.4.5 tells
 * apart: a 304 carries the validators only.
 */

import type { PublishedItem } from "../storage/storage.ts";
import type { Field } from "./answer.ts";
import type { ByteRange } from "./byte_range.ts";
import { inlineDisposition } from "./content_disposition.ts";
import { formatHttpDate } from "./http_date.ts";
import type { Validators } from "./preconditions.ts";

/** A published item as HTTP sees it. */
export interface Representation extends Validators {
  /** ETag and Last-Modified. */
  readonly validatorFields: readonly Field[];
  /** What describes the content, but for its length, which a part of it does not share. */
  readonly contentFields: readonly Field[];
}

/**
 * Describes an item.
 *
 * @param now Milliseconds since the epoch. No date later than this is stated (RFC 9110
 *   §8.8.2.1), should the clock of the machine that published be ahead.
 */
export function represent(item: PublishedItem, now: number): Representation {
  const lastModified = Math.floor(Math.min(item.publishedAt, now) / 1000) * 1000;
  return {
    etag: { weak: false, opaque: item.digest },
    lastModified,
    validatorFields: [
      ["ETag", `"${item.digest}"`],
      ["Last-Modified", formatHttpDate(lastModified)],
    ],
    contentFields: [
      ["Content-Type", item.type],
      ...(item.language === undefined ? [] : [["Content-Language", item.language] as const]),
      ...(item.name === undefined
        ? []
        : [["Content-Disposition", inlineDisposition(item.name)] as const]),
      ["Accept-Ranges", "bytes"],
      ["Repr-Digest", `sha-256=:${Uint8Array.fromHex(item.digest).toBase64()}:`], // RFC 9530 §3
      ["X-Content-Type-Options", "nosniff"],
    ],
  };
}

/** The fields that tell the whole (200) from a part (206). */
export function lengthFields({ length }: PublishedItem, range: ByteRange | undefined): Field[] {
  if (range === undefined) return [["Content-Length", String(length)]];
  return [
    ["Content-Length", String(range.last - range.first + 1)],
    ["Content-Range", `bytes ${range.first}-${range.last}/${length}`],
  ];
}
