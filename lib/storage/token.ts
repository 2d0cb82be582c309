/** Media tokens: the version 4 UUIDs (RFC 9562 §5.4) that name published items. */

import { validate } from "@std/uuid/v4";

/** A version 4 UUID in lower case. Only {@linkcode tokenOf} makes one. */
export type Token = string & { readonly token: unique symbol };

/** What a token consists of, for GLOB and for regular expressions. */
export const TOKEN_PATTERN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx"
  .replaceAll("x", "[0-9a-f]");

/** Returns the token that a valid UUID is: UUIDs are case-insensitive (RFC 9562 §4), tokens not. */
export function tokenOf(uuid: ReturnType<typeof crypto.randomUUID>): Token {
  return uuid.toLowerCase() as Token;
}

/**
 * Parses a token.
 *
 * @param text The text from a command line or record.
 * @returns The token, or `undefined` when the text is not a version 4 UUID.
 */
export function parseToken(text: string): Token | undefined {
  return validate(text) ? tokenOf(text) : undefined;
}

export function newToken(): Token {
  return tokenOf(crypto.randomUUID());
}
