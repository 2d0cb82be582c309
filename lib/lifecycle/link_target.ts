/**
 * What may be named in a Link or a Location.
 */

/**
 * Printable ASCII without what ends a target in a Link (`<`, `>`, `"`, the space), and without the
 * backslash, which browsers read as a slash. They skip tabs and line ends too.
 */
const CHARACTERS = /^[!#-;=?-[\]-~]*$/;

/** Whether a text is a path, whose host can only be that of the request; `//host/` is none. */
export function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text) && CHARACTERS.test(text);
}

/** Whether a text is a path at an origin, where there is one, like `https://example.com/path`. */
export function isPathAt(origin: string | undefined, text: string): boolean {
  return origin !== undefined && text.startsWith(origin) && isPath(text.slice(origin.length));
}

/** Whether a text is an `https:` URL. */
export function isSecureUrl(text: string): boolean {
  return text.startsWith("https://") && CHARACTERS.test(text) && URL.canParse(text);
}
