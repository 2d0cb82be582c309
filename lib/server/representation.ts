/**
 * The metadata fields of a representation (RFC 9110 §8), in the two groups of §15.4.5: a 304
 * carries only the validators.
 */

import type { PublishedItem } from "../storage/item.ts";
import type { ItemStorage, OnFault } from "../storage/storage.ts";
import type { Body, Field } from "../http/outcome.ts";
import type { ByteRange } from "../http/byte_range.ts";
import { formatHttpDate } from "../http/http_date.ts";
import { percentEncode } from "../http/percent_encoding.ts";
import type { Validators } from "../http/preconditions.ts";

export interface Representation extends Validators {
  /** Bytes. */
  readonly length: number;
  /** ETag and the other fields that a 304 has, too. */
  readonly validatorFields: readonly Field[];
  /** The fields that describe the content, except its length, which differs in a 206. */
  readonly contentFields: readonly Field[];
  /** Opens the content, or a range of it; see {@linkcode ItemStorage.open}. */
  readonly open: (range?: ByteRange, onFault?: OnFault) => Promise<Body>;
}

const ACCEPT_RANGES: Field = ["Accept-Ranges", "bytes"];
const NO_SNIFFING: Field = ["X-Content-Type-Options", "nosniff"];

/**
 * Returns the representation of an item.
 *
 * @param storage Opens its content for a GET.
 * @param now Milliseconds since the epoch. Last-Modified is never later than this (RFC 9110
 *   §8.8.2.1), even if the publisher's clock was ahead.
 */
export function representItem(
  item: PublishedItem,
  storage: ItemStorage,
  now: number,
): Representation {
  const { digest, length, type, language, name } = item;
  // An item never changes under its token, so this is a strong validator (RFC 9110 §8.8.2.2).
  const lastModified = Math.floor(Math.min(item.publishedAt, now) / 1000) * 1000;
  const contentFields: Field[] = [["Content-Type", type]];
  if (language !== undefined) contentFields.push(["Content-Language", language]);
  if (name !== undefined) contentFields.push(["Content-Disposition", inlineDisposition(name)]);
  contentFields.push(ACCEPT_RANGES, ["Repr-Digest", reprDigest(digest)], NO_SNIFFING);
  return {
    length,
    etag: { weak: false, opaque: digest },
    lastModified,
    validatorFields: [["ETag", `"${digest}"`], ["Last-Modified", formatHttpDate(lastModified)]],
    contentFields,
    open: (range, onFault) => storage.open(item, range, onFault),
  };
}

/** Returns the fields that differ between the whole content (200) and a range of it (206). */
export function lengthFields(length: number, range: ByteRange | undefined): Field[] {
  if (range === undefined) return [["Content-Length", String(length)]];
  return [
    ["Content-Length", String(range.last - range.first + 1)],
    ["Content-Range", `bytes ${range.first}-${range.last}/${length}`],
  ];
}

/**
 * Returns a Content-Disposition (RFC 6266) for inline display, with a file name for saving.
 *
 * @param filename Any text without control characters.
 * @returns e.g. `inline; filename="a.mp3"`. If the name is not ASCII, an ASCII fallback comes first,
 *   for recipients that do not support the extended form of RFC 8187 after it.
 */
export function inlineDisposition(filename: string): string {
  const plain = filename.replaceAll(/[^\x20-\x7e]/gu, "_");
  const quoted = `inline; filename="${plain.replaceAll(/["\\]/g, "\\$&")}"`;
  // Some recipients percent-decode the plain form (RFC 6266, appendix D).
  if (plain === filename && !filename.includes("%")) return quoted;
  return `${quoted}; filename*=UTF-8''${percentEncode(filename)}`;
}

/** Returns the value of Repr-Digest (RFC 9530 §3) for a SHA-256 in hexadecimal digits. */
export function reprDigest(hex: string): string {
  digestBytes.setFromHex(hex);
  return `sha-256=:${digestBytes.toBase64()}:`;
}

/** Reused, because to allocate a buffer takes longer than the conversion. */
const digestBytes = new Uint8Array(32);
