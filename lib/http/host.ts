/**
 * Validation of the Host field (RFC 9110 §7.2). Deno puts its value in front of the path unchecked,
 * so an invalid one could change which route matches.
 */

/** Matches `uri-host [":" port]` (RFC 3986 §3.2.2): a bracketed address, a name, or nothing. */
const HOST = new RegExp(
  String.raw`^(?:\[(?:[0-9a-f:.]{2,45}|v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+)\]` +
    String.raw`|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*)(?::(?<port>\d*))?$`,
  "i",
);

/**
 * Returns whether a Host field is valid (RFC 9112 §3.2). A missing field counts as valid, even on
 * HTTP/1.1, because HTTP/1.0 and HTTP/2 do not require one and Deno does not expose the version.
 */
export function isHost(value: string | null): boolean {
  if (value === null) return true;
  const groups = HOST.exec(value)?.groups;
  return groups !== undefined && Number(groups["port"] ?? 0) <= 65_535;
}
