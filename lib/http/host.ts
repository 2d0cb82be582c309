/**
 * The Host field (RFC 9110 §7.2). Deno puts it in front of the path without a look at it, so one
 * that is no host could change which route a request is about.
 */

/** `uri-host [":" port]` (RFC 3986 §3.2.2): an address in brackets, or a name, which may be empty. */
const HOST = new RegExp(
  String.raw`^(?:\[(?:[0-9a-f:.]{2,45}|v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+)\]` +
    String.raw`|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*)(?::(?<port>\d*))?$`,
  "i",
);

/** Bounds what {@linkcode isHost} remembers: longer ones are checked each time. */
const MAX_LENGTH = 255;

let latestValid: string | null = null;

/**
 * Whether a request may state this Host (RFC 9112 §3.2). HTTP/1.0 has no such field, and HTTP/2
 * another, so none is valid too: Deno does not tell which version a request came in.
 */
export function isHost(value: string | null): boolean {
  if (value === latestValid || value === null) return true; // most clients use one name
  const groups = HOST.exec(value)?.groups;
  if (groups === undefined || Number(groups["port"] ?? 0) > 65_535) return false;
  if (value.length <= MAX_LENGTH) latestValid = value;
  return true;
}
