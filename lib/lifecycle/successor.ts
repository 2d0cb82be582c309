/**
 * Validation of the successor that a user's function returns for an untrusted request.
 */

import { isPath, isPathAt } from "./link_target.ts";

/** How successors are named, and where they may be. */
export interface SuccessorOptions {
  /** Returns the URL of what replaces the requested resource. */
  readonly successor?: ((request: Request) => string | undefined) | undefined;
  /** An allowed origin besides the request's own. */
  readonly successorOrigin?: string | undefined;
}

/**
 * Creates a function that returns a request's successor, or `undefined` if there is none that is
 * safe to send. Successors are built from the request's URL, so a client could make one point to
 * another host or break out of a Link. The first rejected one is logged to the console.
 *
 * @throws {TypeError} If `successorOrigin` is not an origin.
 */
export function successorOf(options: SuccessorOptions): (request: Request) => string | undefined {
  const { successor, successorOrigin } = options;
  if (successorOrigin !== undefined && !isOrigin(successorOrigin)) {
    const got = JSON.stringify(successorOrigin);
    const expected = 'an origin like "https://example.com", without a path';
    throw new TypeError(`successorOrigin: expected ${expected}, got ${got}`);
  }
  if (successor === undefined) return () => undefined;

  let hasWarned = false;
  const warn = (...words: unknown[]) => {
    if (!hasWarned) console.warn("Ignored a successor:", ...words);
    hasWarned = true;
  };
  return (request) => {
    let target: unknown;
    try {
      target = successor(request);
    } catch (error) { // e.g. decodeURIComponent() on a malformed path
      return warn(error), undefined;
    }
    if (target === undefined) return undefined;
    if (typeof target === "string" && isItself(request, target)) {
      return warn(`${JSON.stringify(target.slice(0, 200))} is what was requested`), undefined;
    }
    const isFit = typeof target === "string" && (isPath(target) ||
      isPathAt(originOf(request), target) ||
      isPathAt(successorOrigin, target));
    if (isFit) return target as string;
    const got = typeof target === "string" ? JSON.stringify(target.slice(0, 200)) : typeof target;
    const expected =
      'a path that starts with one "/", or a URL at the origin of the request or at ' +
      "successorOrigin, in printable ASCII";
    return warn(`expected ${expected}, got ${got}`), undefined;
  };
}

/** Whether a successor is the requested resource: a redirect to it would never end. */
function isItself({ url }: Request, target: string): boolean {
  if (!URL.canParse(target, url)) return false;
  const [resolved] = new URL(target, url).href.split("#");
  return resolved === url.split("#")[0];
}

/** Returns the origin of a request; `undefined` if its Host field is invalid. */
function originOf({ url }: Request): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function isOrigin(text: unknown): boolean {
  return typeof text === "string" && /^https?:/.test(text) && URL.canParse(text) &&
    new URL(text).origin === text;
}
