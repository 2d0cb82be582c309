/**
 * Media tokens: the version 4 UUIDs (RFC 9562 §5.4) that name published items.
 */

import { validate } from "@std/uuid/v4";

/** A version 4 UUID in lower case. Only {@linkcode parseToken} and {@linkcode newToken} make one. */
export type Token = string & { readonly token: unique symbol };

/**
 * Reads a token. UUIDs are read without regard to case (RFC 9562 §4), so both spellings name the
 * same item; the lower-case one is used from here on.
 *
 * @param text What a path or a command line holds.
 * @returns The token, or `undefined` when the text is not a version 4 UUID.
 */
export function parseToken(text: string): Token | undefined {
  return validate(text) ? text.toLowerCase() as Token : undefined;
}

/** A fresh random token. */
export function newToken(): Token {
  return crypto.randomUUID() as string as Token;
}
