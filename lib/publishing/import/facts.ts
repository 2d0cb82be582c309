/** What a valid line says of its item, and how it compares with the catalogue. */

import { createHash } from "node:crypto";
import { RefusedError } from "../../errors/refused_error.ts";
import { type CatalogueEntry, entryOf } from "../../storage/item.ts";
import { type Token, tokenOf } from "../../storage/token.ts";
import { type ContentLine, refusalOfMember, type ValidLine } from "./valid_line.ts";
import { fileName } from "../publish.ts";
import { membersOf } from "../entry_members.ts";

/** Facts by the names of their members: `null` means none, `undefined` means not stated. */
type Facts = Readonly<Record<string, string | number | null | undefined>>;

/** Thrown when the catalogue has a token with other facts. */
export class ConflictError extends RefusedError {}

/** The facts that count as none unless they are stated. */
const OPTIONAL = ["type", "length", "sha256", "name", "language", "location", "validator"];
export const NONE: Facts = Object.fromEntries(OPTIONAL.map((name) => [name, null]));

/** Returns the facts that a line states, and defaults for the others. */
export function factsOf({ source, token: _, ...stated }: ValidLine, defaults: Facts): Facts {
  const { path: _path, publishedAt, unpublishedAt, ...facts }: Facts = stated;
  return {
    ...defaults,
    ...facts,
    ...(source === "object" ? { validator: undefined } : undefined), // an object may get a new ETag
    publishedAt: isoOf(publishedAt),
    unpublishedAt: isoOf(unpublishedAt),
  };
}

function isoOf(instant: Facts[string]): string | undefined {
  return typeof instant === "number" ? new Date(instant).toISOString() : undefined;
}

/**
 * Requires the facts of a line to match the entry of its token.
 *
 * @throws {ConflictError} For the first difference.
 */
export function requireSame(facts: Facts, token: Token, found: CatalogueEntry): void {
  if (found.state === "unpublished" && facts["state"] !== "unpublished") {
    const at = new Date(found.unpublishedAt).toISOString();
    const reason = `it was unpublished at ${at}, and tokens are never reused`;
    throw conflictOf("token", token, { reason, kind: "unpublished" });
  }
  const known: Facts = { ...NONE, ...membersOf(token, found) };
  for (const [name, value] of Object.entries(facts)) {
    const other = known[name];
    if (value === undefined || value === other) continue;
    const reason = `token ${token} has ${other === null ? "none" : JSON.stringify(other)}` +
      " in the catalogue, and items never change";
    throw conflictOf(name, value, { reason, kind: "another in the catalogue" });
  }
}

function conflictOf(...args: Parameters<typeof refusalOfMember>): ConflictError {
  const { message, kind } = refusalOfMember(...args);
  return new ConflictError(message, { kind });
}

/**
 * Derives the token of a line without one: the same for the same source, so that importing a file
 * again changes nothing. Like all tokens, it has the form of a random UUID (version 4).
 *
 * @param source The location, or the digest and name of the content.
 */
export function derivedToken(...source: (string | undefined)[]): Token {
  const identity = JSON.stringify(source.map((part) => part ?? null));
  const bytes = createHash("sha256").update(identity).digest().subarray(0, 16);
  bytes[6] = (bytes[6] as number) & 0x0f | 0x40; // the version (RFC 9562 §4.2)
  bytes[8] = (bytes[8] as number) & 0x3f | 0x80; // the variant (§4.1)
  const part = (start: number, end: number) => bytes.toString("hex", start, end);
  return tokenOf(`${part(0, 4)}-${part(4, 6)}-${part(6, 8)}-${part(8, 10)}-${part(10, 16)}`);
}

/** A valid line, and what it alone determines. */
export type Candidate =
  /** With the entry to add to the catalogue. */
  | {
    readonly kind: "entry";
    readonly valid: ValidLine;
    readonly token: Token;
    readonly entry: CatalogueEntry;
  }
  /** The content must be read first. */
  | {
    readonly kind: "content";
    readonly valid: ContentLine;
    /** `undefined` if it depends on the content. */
    readonly token: Token | undefined;
  };

/**
 * Returns a valid line with what it alone determines.
 *
 * @param now The time of what has none, in milliseconds since the epoch.
 */
export function candidateFor(valid: ValidLine, now: number): Candidate {
  switch (valid.source) {
    case "tombstone": {
      const { kind, token, unpublishedAt = now } = valid;
      return { kind: "entry", valid, token, entry: { state: "unpublished", kind, unpublishedAt } };
    }
    case "url": {
      const { source: _, state: __, publishedAt = now, ...stated } = valid;
      const { token = derivedToken(stated.location) } = stated;
      return { kind: "entry", valid, token, entry: entryOf({ ...stated, token, publishedAt }) };
    }
    case "content": {
      const { source: _, state: __, sha256: digest, publishedAt = now, ...stated } = valid;
      const { token = derivedToken(digest, stated.name) } = stated;
      const entry = entryOf({ ...stated, token, digest, publishedAt });
      return { kind: "entry", valid, token, entry };
    }
    case "object": {
      const { source: _, state: __, sha256: digest, publishedAt = now, ...stated } = valid;
      const { kind, type, length, validator, token = derivedToken(stated.location) } = stated;
      if (
        kind === undefined || type === undefined || length === undefined ||
        digest === undefined || validator === undefined
      ) {
        return { kind: "content", valid, token };
      }
      const entry = entryOf({ ...stated, token, kind, type, length, digest, publishedAt });
      return { kind: "entry", valid, token, entry };
    }
    case "file": {
      const { sha256, path, name = fileName(path) } = valid;
      const derived = sha256 === undefined ? undefined : derivedToken(sha256, name);
      return { kind: "content", valid, token: valid.token ?? derived };
    }
  }
}
