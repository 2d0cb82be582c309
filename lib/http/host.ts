/**
 * The Host field (RFC 9110 §7.2). Deno puts it in front of the path without a look at it, so one
 * that is no host could change which route a request is about.
 */

/** Bounds what {@linkcode isHost} remembers: longer ones are checked each time. */
const MAX_LENGTH = 255;

let latestValid: string | null = null;

/**
 * Whether a request may state this Host (RFC 9112 §3.2): a host and perhaps a port, or nothing.
 * HTTP/1.0 has no such field, and HTTP/2 another.
 */
export function isHost(value: string | null): boolean {
  if (value === latestValid || value === null) return true; // most clients use one name
  // Without what would end the authority, which a parser of URLs takes for the path and the rest.
  if (!/^[!-~]*$/.test(value) || /[/\\?#@]/.test(value)) return false;
  if (value !== "" && !URL.canParse(`http://${value}`)) return false;
  if (value.length <= MAX_LENGTH) latestValid = value;
  return true;
}
