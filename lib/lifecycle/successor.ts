/**
 * The successor that a user's function names, for a request that anyone may have sent.
 */

import { isPath, isPathAt } from "./link_target.ts";

/** What names successors, and where they may be. */
export interface SuccessorOptions {
  /** Names what replaces the very thing a request asks for. */
  readonly successor?: ((request: Request) => string | undefined) | undefined;
  /** Another origin than the request's own, at which successors may be. */
  readonly successorOrigin?: string | undefined;
}

/**
 * Makes a function that names the successor, or `undefined` where there is none that can be sent:
 * one that leads to a host that nobody named, or that breaks a Link, could be a client's choice,
 * as much of it comes from the URL. The first such is warned of on the console.
 *
 * @throws {TypeError} When `successorOrigin` is no origin.
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
    if (!hasWarned) console.warn("A successor was left out:", ...words);
    hasWarned = true;
  };
  return (request) => {
    let target: unknown;
    try {
      target = successor(request);
    } catch (error) { // decodeURIComponent() throws for what a client wrote
      return warn(error), undefined;
    }
    if (target === undefined) return undefined;
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

/** The origin of a request; none where its Host field makes no URL. */
function originOf({ url }: Request): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function isOrigin(text: unknown): boolean {
  return typeof text === "string" && /^https?:/.test(text) && URL.canParse(text) &&
    new URL(text).origin === text;
}
