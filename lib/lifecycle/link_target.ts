/** Validation of URLs for Link and Location. */

/**
 * Printable ASCII, except what ends a Link target (`<`, `>`, `"` and space), and the backslash,
 * which browsers treat as a slash. They also strip tabs and newlines.
 */
const CHARACTERS = /^[!#-;=?-[\]-~]*$/;

/**
 * The length of the longest target, because proxies refuse long fields: nginx a head over 4 kB.
 */
export const MAX_TARGET_LENGTH = 1024;

/** Tests for an absolute path, which stays on the request's host, as `//host/` does not. */
export function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text) && CHARACTERS.test(text);
}

/** Tests for an absolute path at an origin, like `https://example.com/path`. */
export function isPathAt(origin: string | undefined, text: string): boolean {
  return origin !== undefined && text.startsWith(origin) && isPath(text.slice(origin.length));
}

/** Tests for an absolute path, or an `https:` URL, that is not too long. */
export function isPathOrSecureUrl(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_TARGET_LENGTH && CHARACTERS.test(value) &&
    (isPath(value) || value.startsWith("https://") && URL.canParse(value));
}
