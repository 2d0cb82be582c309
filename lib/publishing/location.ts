/** Validating and normalizing public URLs of content on other servers. */

import { RefusedError } from "../errors/refused_error.ts";
import { encodeCharacter } from "../http/percent_encoding.ts";
import { quoted, withoutPassword } from "../input/printable.ts";
import { MAX_LOCATION } from "../storage/item.ts";

/** The signatures in presigned URLs: AWS (versions 4 and 2), Google, CloudFront, Azure. */
const SIGNATURE = /^(x-(amz|goog)-)?signature$|^sig$/i;

/** Parameters that show that a URL is presigned. Other URLs may have a `sig`, too. */
const SIGNED_WITH = /^(x-(amz|goog)-signature|awsaccesskeyid|googleaccessid|key-pair-id|se|si)$/i;

/** Returns whether a text is a URL, rather than a path. */
export function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

export function isPublicUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/**
 * Normalizes a URL for the Location field (RFC 9110 §10.2.2): ASCII, and valid by RFC 3986.
 *
 * @throws {RefusedError} When it is not a URL, or does not work for every client. The message
 *   contains no password and no signature.
 */
export function parseLocation(text: string): string {
  const refusal = (kind: string, shown: string, why: string) =>
    new RefusedError(`${quoted(shown)}${why}`, { kind });
  const url = /\p{Cc}/u.test(text) ? null : URL.parse(text);
  if (url === null) {
    throw refusal(
      "no URL",
      withoutPassword(text),
      " is not a URL; expected one like https://host/path",
    );
  }
  if (url.username !== "" || url.password !== "") {
    url.username = "";
    url.password = "";
    const why = "a user or password, which every client would see; expected a URL that needs none";
    throw refusal("URL with a password", url.href, ` was given with ${why}`);
  }
  const names = [...url.searchParams.keys()];
  const isPresigned = names.some((name) => SIGNED_WITH.test(name));
  const signature = isPresigned && names.find((name) => SIGNATURE.test(name));
  if (signature) {
    url.search = "";
    const why = "which expires, and is valid for GET or HEAD alone";
    const advice = "expected a URL that needs no signature";
    throw refusal("signed URL", url.href, ` was given with ${signature}, ${why}; ${advice}`);
  }
  if (url.href.includes("#")) {
    const why = " has a fragment, which only clients choose; expected a URL without one";
    throw refusal("URL with a fragment", url.href, why);
  }
  const location = url.origin + encodeInvalid(url.href.slice(url.origin.length));
  if (location.length > MAX_LOCATION) {
    const why = `has ${location.length} characters; expected ${MAX_LOCATION} at most`;
    throw refusal("long URL", location.slice(0, 64), `… ${why}`);
  }
  return location;
}

/** Encodes the ASCII characters that URL parsers keep but RFC 3986 does not allow. */
function encodeInvalid(path: string): string {
  return path.replaceAll(/%(?![0-9a-f]{2})|[^\w.~!$&'()*+,;=:@/?%-]/gi, encodeCharacter);
}
