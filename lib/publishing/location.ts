/**
 * Validating and normalizing public URLs of content on other servers.
 */

import { MAX_LOCATION } from "../storage/item.ts";
import { quoted, withoutPassword } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";

/** The signatures in presigned URLs: AWS (versions 4 and 2), Google, CloudFront, Azure. */
const SIGNATURE = /^(x-(amz|goog)-)?signature$|^sig$/i;

/** The parameters of which a presigned URL has one, so that others may have a `sig`. */
const SIGNED_WITH = /^(x-(amz|goog)-signature|awsaccesskeyid|googleaccessid|key-pair-id|se|si)$/i;

/** Whether a text is an http(s) URL. */
export function isPublicUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/**
 * Normalizes a URL for the Location field (RFC 9110 §10.2.2): ASCII, and valid by RFC 3986.
 *
 * @throws {RefusedError} When it is not a URL, or not for everybody. The message contains no
 *   password and no signature.
 */
export function parseLocation(text: string): string {
  const url = /\p{Cc}/u.test(text) ? null : URL.parse(text);
  if (url === null) {
    const shown = quoted(withoutPassword(text));
    throw new RefusedError(`${shown} is not a URL; expected one like https://host/path`);
  }
  if (url.username !== "" || url.password !== "") {
    url.username = url.password = "";
    throw new RefusedError(
      `${quoted(url.href)} was given with a user or password, which every client would see;` +
        " expected a URL that needs none",
    );
  }
  const names = url.search === "" ? [] : [...url.searchParams.keys()];
  const isPresigned = names.some((name) => SIGNED_WITH.test(name));
  const signature = isPresigned && names.find((name) => SIGNATURE.test(name));
  if (signature) {
    url.search = "";
    throw new RefusedError(
      `${
        quoted(url.href)
      } was given with ${signature}, which expires, and is valid for GET or HEAD` +
        " alone; expected a URL that needs no signature",
    );
  }
  if (url.href.includes("#")) {
    throw new RefusedError(
      `${quoted(url.href)} has a fragment, which only clients choose; expected a URL without one`,
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

/** Encodes the ASCII characters that URL parsers keep but RFC 3986 does not allow. */
function encodeInvalid(path: string): string {
  return path.replaceAll(
    /%(?![0-9a-f]{2})|[^\w.~!$&'()*+,;=:@/?%-]/gi,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
