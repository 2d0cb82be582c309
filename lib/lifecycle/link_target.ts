/** Validation of URLs for Link and Location. */

/**
 * Matches printable ASCII. Excludes the characters that end a Link target (`<`, `>`, `"` and
 * space), and those that browsers change: they treat a backslash as a slash, and strip tabs and
 * newlines.
 */
const CHARACTERS = /^[!#-;=?-[\]-~]*$/;

/** The maximum length of a target. Proxies refuse long fields; nginx refuses a head over 4 kB. */
export const MAX_TARGET_LENGTH = 1024;

/** Returns whether a text is an absolute path. `//host/` is none: it leads to another host. */
export function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text) && CHARACTERS.test(text);
}

/** Returns whether a text is an absolute path at an origin, like `https://example.com/path`. */
export function isPathAt(origin: string | undefined, text: string): boolean {
  return origin !== undefined && text.startsWith(origin) && isPath(text.slice(origin.length));
}

/** Returns whether a value is an absolute path, or an `https:` URL, and not too long. */
export function isPathOrSecureUrl(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_TARGET_LENGTH && CHARACTERS.test(value) &&
    (isPath(value) || isSecureUrl(value));
}

/** Returns whether a text is an `https:` URL that tells everybody no user or password. */
function isSecureUrl(text: string): boolean {
  if (!text.startsWith("https://") || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username + password === "";
}
