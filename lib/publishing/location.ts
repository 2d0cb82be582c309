/**
 * URLs of content that is elsewhere, made fit for every client to follow.
 */

import { MAX_LOCATION } from "../storage/storage.ts";
import { quoted } from "./printable.ts";
import { RefusedError } from "./publish.ts";

/** The signature in a presigned URL, of AWS and what is compatible, and of Google. */
const SIGNATURE = /^x-(amz|goog)-signature$/i;

/** Whether a text is the URL of content that can be published where it is. */
export function isPublicUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/**
 * Makes of a URL what the Location field can hold (RFC 9110 §10.2.2): ASCII, and valid by RFC 3986.
 *
 * @throws {RefusedError} When it is none, or not one for everybody. The message shows no password
 *   and no signature.
 */
export function parseLocation(text: string): string {
  const url = /\p{Cc}/u.test(text) ? null : URL.parse(text);
  if (url === null) {
    const shown = text.replace(/^([^:]*:\/\/).*@/s, "$1"); // a password is what may be wrong
    throw new RefusedError(`${quoted(shown)} is not a URL; expected one like https://host/path`);
  }
  if (url.username !== "" || url.password !== "") {
    url.username = url.password = "";
    throw new RefusedError(
      `${quoted(url.href)} was given with a user or password, which every client would see;` +
        " expected a URL that needs none",
    );
  }
  const names = url.search === "" ? [] : [...url.searchParams.keys()];
  const signature = names.find((name) => SIGNATURE.test(name));
  if (signature !== undefined) {
    url.search = "";
    throw new RefusedError(
      `${quoted(url.href)} was given with ${signature}: it expires, and is valid for GET or HEAD` +
        " alone; expected a URL that needs no signature",
    );
  }
  if (url.href.includes("#")) {
    throw new RefusedError(
      `${quoted(url.href)} has a fragment, which is the client's to choose; expected a URL without`,
    );
  }
  const location = url.origin + encodeInvalid(url.href.slice(url.origin.length));
  if (location.length > MAX_LOCATION) {
    throw new RefusedError(
      `${quoted(location.slice(0, 64))}… has ${location.length} characters;` +
        ` expected ${MAX_LOCATION} at most`,
    );
  }
  return location;
}

/** Encodes the few ASCII characters that URL parsers leave alone and RFC 3986 does not allow. */
function encodeInvalid(path: string): string {
  return path.replaceAll(
    /%(?![0-9a-f]{2})|[^\w.~!$&'()*+,;=:@/?%-]/gi,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
