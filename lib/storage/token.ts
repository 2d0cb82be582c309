/**
 * Media tokens: the version 4 UUIDs (RFC 9562 §5.4) that name published items.
 */

import { validate } from "@std/uuid/v4";

/** A version 4 UUID in lower case. Only {@linkcode parseToken} and {@linkcode newToken} make one. */
export type Token = string & { readonly token: unique symbol };

/**
 * Parses a token. UUIDs are case-insensitive (RFC 9562 §4); tokens are in lower case from here on.
 *
 * @param text The text from a path or command line.
 * @returns The token, or `undefined` when the text is not a version 4 UUID.
 */
export function parseToken(text: string): Token | undefined {
  return validate(text) ? text.toLowerCase() as Token : undefined;
}

/** Generates a random token. */
export function newToken(): Token {
  return crypto.randomUUID() as string as Token;
}
