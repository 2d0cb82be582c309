/** Validation of the successors that the option returns for untrusted requests. */

import { printFailure } from "../any_value.ts";
import { isPath, isPathAt, MAX_TARGET_LENGTH } from "../link_target.ts";
import { describeValue, mismatch } from "../mismatch.ts";
import { isPromise, type LifecycleOptions, type RequestHead } from "./options.ts";

const EXPECTED = 'a path that starts with one "/", or a URL at the origin of the request or at ' +
  "successorOrigin, other than the URL of the request, in printable ASCII, of at most " +
  `${MAX_TARGET_LENGTH} characters`;

/**
 * Creates a function that returns a request's successor, or `undefined` if there is none that is
 * safe to send. Successors are built from the request's URL, so a client could make one point to
 * another host or break out of a Link. Only the first rejection is logged.
 *
 * @returns The function. It takes the request, and its URL, which is empty if it has none.
 * @throws {TypeError} If `successorOrigin` is not an origin.
 */
export function successorOf<Incoming extends RequestHead>(
  options: Pick<LifecycleOptions<Incoming>, "successor" | "successorOrigin">,
): (request: Incoming, url: string) => string | undefined {
  const { successor, successorOrigin } = options;
  if (successorOrigin !== undefined && !isOrigin(successorOrigin)) {
    const expected = 'an origin like "https://example.com", without a path';
    throw new TypeError(mismatch("successorOrigin", successorOrigin, expected));
  }
  if (successor === undefined) return () => undefined;

  let hasWarned = false;
  const ignore = (reason: unknown) => {
    if (!hasWarned) printFailure("Ignored a successor:", reason, "warn");
    hasWarned = true;
    return undefined;
  };
  return (request, url) => {
    let target: unknown;
    try {
      target = successor(request);
    } catch (error) { // e.g. decodeURIComponent() on a malformed path
      return ignore(error);
    }
    if (target === undefined) return undefined;
    if (isPromise(target)) target.then(undefined, () => {}); // avoids an unhandled rejection
    if (typeof target === "string" && !isItself(url, target)) {
      const origin = URL.canParse(url) ? new URL(url).origin : undefined; // Host may be invalid
      // Send a path: behind a proxy that terminates TLS, the client sees another origin.
      const isSameOrigin = origin !== undefined && isPathAt(origin, target);
      const sent = isSameOrigin ? target.slice(origin.length) : target;
      const isSafe = isPath(sent) || isPathAt(successorOrigin, sent);
      if (isSafe && sent.length <= MAX_TARGET_LENGTH) return sent;
    }
    const got = describeValue(target).slice(0, 200);
    return ignore(`expected ${EXPECTED}, got ${got}`);
  };
}

/** Returns whether a successor is the requested resource: a redirect to it would never end. */
function isItself(url: string, target: string): boolean {
  const withoutFragment = (url: string) => url.replace(/#.*/s, "");
  return URL.canParse(target, url) &&
    withoutFragment(new URL(target, url).href) === withoutFragment(url);
}

function isOrigin(text: unknown): boolean {
  return typeof text === "string" && /^https?:/.test(text) && URL.canParse(text) &&
    new URL(text).origin === text;
}
