/** Media tokens: the version 4 UUIDs (RFC 9562 §5.4) that name published items. */

import { validate } from "@std/uuid/v4";

/** A version 4 UUID in lower case. Only {@linkcode tokenOf} makes one. */
export type Token = string & { readonly token: unique symbol };

/** Converts a valid UUID. UUIDs are case-insensitive (RFC 9562 §4); tokens are in lower case. */
export function tokenOf(uuid: ReturnType<typeof crypto.randomUUID>): Token {
  return uuid.toLowerCase() as Token;
}

/** Parses a token; returns `undefined` if the text is not a version 4 UUID. */
export function parseToken(text: string): Token | undefined {
  return validate(text) ? tokenOf(text) : undefined;
}

export function newToken(): Token {
  return tokenOf(crypto.randomUUID());
}
