/**
 * Comparing records to import with the catalogue.
 */

import { createHash } from "node:crypto";
import { parseInstant } from "../lifecycle/instant.ts";
import {
  type CatalogueEntry,
  entryOf,
  type LinkedItem,
  type PublishedItem,
} from "../storage/storage.ts";
import { parseToken, type Token } from "../storage/token.ts";
import { type ImportRecord, type RawRecord, RecordError } from "./import_record.ts";
import { fileName } from "./publish.ts";
import { toRecord } from "./record.ts";

/** Members that mean "none" when absent, with the properties of an item that they state. */
const FACTS = new Map<string, keyof PublishedItem>([
  ...(["token", "kind", "type", "length", "name", "language", "location", "validator"] as const)
    .map((name) => [name, name] as const),
  ["sha256", "digest"],
]);

/** Facts by their names in records: `null` means none, `undefined` means not stated. */
export type Facts = Readonly<Record<string, string | number | null | undefined>>;

/** Facts that mean "none" when they are absent. */
const ITEM_FACTS = { type: null, length: null, sha256: null, name: null, language: null };
const LOCATED_FACTS = { location: null, validator: null };

/** Returns the token that a line states, if it is valid. */
export function tokenIn({ token }: RawRecord): Token | undefined {
  return typeof token === "string" ? parseToken(token) : undefined;
}

/**
 * Whether a line equals what is on record, member by member. Such a line is valid and needs no
 * further checks, which makes importing the same file again fast.
 */
export function isOnRecord(raw: RawRecord, token: Token, entry: CatalogueEntry): boolean {
  const isPublished = entry.state !== "unpublished";
  const known: RawRecord = { ...(isPublished ? entry.item : { kind: entry.kind }), token };
  for (const [name, fact] of FACTS) if (raw[name] !== known[fact]) return false;
  const instant = isPublished ? entry.item.publishedAt : entry.unpublishedAt;
  for (const name in raw) {
    if (FACTS.has(name)) continue;
    const value = raw[name];
    const isSo = name === "state"
      ? value === (isPublished ? "published" : "unpublished")
      : name === (isPublished ? "publishedAt" : "unpublishedAt") &&
        typeof value === "string" && parseInstant(value) === instant;
    if (!isSo) return false;
  }
  return isPublished || "state" in raw;
}

/** Returns the facts of an entry. */
export function factsOf(token: Token, entry: CatalogueEntry): Facts {
  return { ...ITEM_FACTS, ...LOCATED_FACTS, ...toRecord(token, entry) };
}

/**
 * Requires a record not to contradict what is on record.
 *
 * @throws {RecordError} For the first difference.
 */
export function requireSame(facts: Facts, token: Token, found: CatalogueEntry): void {
  if (found.state === "unpublished" && facts["state"] !== "unpublished") {
    const at = new Date(found.unpublishedAt).toISOString();
    const reason = `it was unpublished at ${at}, and tokens are never reused`;
    throw new RecordError(reason, "token", token);
  }
  const known = factsOf(token, found);
  for (const [name, value] of Object.entries(facts)) {
    const other = known[name];
    if (value === undefined || value === other) continue;
    const reason = `token ${token} has ${other === null ? "none" : JSON.stringify(other)}` +
      " on record, and items never change";
    throw new RecordError(reason, name, value);
  }
}

/** Returns the times that a record states; `undefined` where it states none. */
export function instantsOf(record: ImportRecord): Facts {
  if (record.source === "tombstone") return { unpublishedAt: isoOf(record.unpublishedAt) };
  return { publishedAt: isoOf(record.publishedAt) };
}

function isoOf(instant: number | undefined): string | undefined {
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/**
 * Derives the token of a record without one: the same for the same source, so that importing a file
 * again changes nothing. Like all tokens, it has the form of a random UUID (version 4).
 *
 * @param source The location, or the digest and name of the content.
 */
export function derivedToken(...source: (string | undefined)[]): Token {
  const identity = JSON.stringify(source.map((part) => part ?? null));
  const bytes = createHash("sha256").update(identity).digest().subarray(0, 16);
  bytes[6] = (bytes[6] as number) & 0x0f | 0x40; // the version (RFC 9562 §4.2)
  bytes[8] = (bytes[8] as number) & 0x3f | 0x80; // the variant (§4.1)
  const digits = bytes.toString("hex");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-") as Token;
}

/** Derives the token of a record without one, if the record alone determines it. */
export function derivedTokenOf(record: ImportRecord): Token | undefined {
  switch (record.source) {
    case "tombstone":
      return record.token;
    case "file": {
      const { sha256, path, name = fileName(path) } = record;
      return sha256 === undefined ? undefined : derivedToken(sha256, name);
    }
    case "content":
      return derivedToken(record.sha256, record.name);
    default:
      return derivedToken(record.location);
  }
}

/** Returns the entry for a record, if the record alone determines it. */
export function entryFor(
  record: ImportRecord,
  token: Token,
  now: number,
): CatalogueEntry | undefined {
  if (record.source === "tombstone") {
    const { kind, unpublishedAt = now } = record;
    return { state: "unpublished", kind, unpublishedAt };
  }
  const { kind, type, length, publishedAt = now } = record;
  if (record.source === "url") {
    const { location, validator } = record;
    const item: LinkedItem = {
      ...{ token, kind: record.kind, location, publishedAt },
      ...(type === undefined ? undefined : { type }),
      ...(length === undefined ? undefined : { length }),
      ...(validator === undefined ? undefined : { validator }),
    };
    return entryOf(item);
  }
  if (record.source === "file") return undefined;
  const { sha256, name, language } = record;
  if (kind === undefined || type === undefined || length === undefined || sha256 === undefined) {
    return undefined;
  }
  const item: PublishedItem = {
    ...{ token, kind, type, length, digest: sha256, publishedAt },
    ...(name === undefined ? undefined : { name }),
    ...(language === undefined ? undefined : { language }),
  };
  if (record.source === "content") return entryOf(item);
  const { location, validator } = record;
  return validator === undefined ? undefined : entryOf({ ...item, location, validator });
}
