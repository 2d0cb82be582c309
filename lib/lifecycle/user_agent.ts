/** Client names and releases, read from User-Agent (RFC 9110 §10.1.5). */

/** The name of clients that send no User-Agent. */
export const NO_USER_AGENT = "(no User-Agent)";

/** The name given to anything without a usable name. */
export const OTHER = "(other)";

/** Browsers, in order of preference: Chrome also names Safari. */
const BROWSERS = ["Chrome", "Safari", "Mobile Safari"];

/** Products that many clients name: browsers, engines and platforms. In lower case. */
const SHARED_PRODUCTS = new Set([
  "mozilla",
  "compatible",
  "msie",
  "khtml",
  "gecko",
  "like gecko",
  "applewebkit",
  "version",
  "mobile",
  "x64",
  "python",
  "electron",
  "chrome",
  "chromium",
  "safari",
  "mobile safari",
  "applecoremedia",
  "cfnetwork",
  "darwin",
  "ios",
  "dalvik",
  "android",
  "linux",
  "linux upnp",
]);

/** Matches a bot in a comment of `Mozilla/5.0`: the text after `compatible;`, or before a URL. */
const BOT = /[(;] ?(?:compatible;[ +]*|(?=[^();]+; ?\+http))([^;)]+)/;

/** Matches a URL, a comment (with any nested ones), or a product with a version after a slash. */
const PRODUCT_OR_COMMENT =
  /https?:\S*|\(+(?:[^()]|\([^()]*\))*|([\w%\x80-\xff][^/;,:()[\]]*)(?:\/\S*)?/g;

/**
 * Matches the end of a product after its name: a version without a slash, or a URL's scheme. A
 * version after "@" has up to three numbers and nothing like the end of a mail address.
 */
const VERSION_SUFFIX =
  /@v?\d+(?:\.\d+){0,2}(?:[-+][a-zA-Z\d]+(?:\.\d+)*)?(?= |$).*| v?\d.*|[-_]?v?\d{1,4}\.\d.*| \+?https?$/;

/**
 * Matches anything that may identify a person, an installation or an item: numbers, hashes, UUIDs,
 * emails, JWTs.
 */
export const IDENTIFYING = /\d{6}|[\da-f]{8}|@|eyJ[\w-]{8}/i;

/** Matches the version after a name, but only three numbers of a possible IPv4 address. */
const RELEASE =
  /^(?:\d{1,3}(?:\.\d{1,3}){2}(?=\.\d{1,3}(?![\da-z]|\.\d))|\d(?:[\w.+~-]{0,14}\w)?)/i;

/** A client, as its User-Agent presents it. */
export interface Product {
  readonly name: string;
  /** The version after the name, if there is one. */
  readonly release?: string | undefined;
}

/**
 * Returns the name and release under which to count a client. The name is that of the first product
 * that few other clients name, or else that of the browser. It has at most 64 characters, all
 * printable; those that would not be seen are escaped, as in `\u200b`. The release has at most 16
 * characters, and begins with a digit. Neither contains an address or a token.
 *
 * @param userAgent e.g. `Pocket%20Casts/7.5 CFNetwork/1410` for "Pocket Casts" and "7.5".
 * @returns The name is "(no User-Agent)" without a User-Agent, and "(other)" if the User-Agent
 *   names no product, or one that may identify a person or an installation. A release that may
 *   identify either is left out.
 */
export function productOf(userAgent: string | null): Product {
  if (userAgent === null || userAgent === "") return { name: NO_USER_AGENT };
  const text = userAgent.slice(0, 256); // bounds the cost
  const known = products.get(text);
  if (known !== undefined) return known;
  const [found, rest] = firstProductIn(text);
  const cut = found.slice(0, 64);
  const seen = onOneLine(cut.replace(UNSEEN, ""));
  const isNamed = /\p{L}/u.test(seen) && !IDENTIFYING.test(seen);
  const name = onOneLine(cut.replace(UNSEEN, escaped).slice(0, 64));
  const product = isNamed ? { name, release: releaseIn(rest) } : { name: OTHER };
  if (products.size >= MAX_PRODUCTS) products.clear();
  products.set(text, product);
  return product;
}

function onOneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, " ").trim();
}

/** Characters that take no room or are blank: two names that differ by them look the same. */
const UNSEEN = /(?!\p{Bidi_Control})[\p{Default_Ignorable_Code_Point}\u2800]/gu;

function escaped(char: string): string {
  const code = char.codePointAt(0)?.toString(16).padStart(4, "0") ?? "";
  return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
}

/** The products of recent User-Agents. Parsing one costs as much as the rest of counting. */
const products = new Map<string, Product>();
const MAX_PRODUCTS = 1_000;

/** Returns the name of the first product that few other clients name, and the text after it. */
function firstProductIn(userAgent: string): [name: string, rest: string] {
  const bot = userAgent.startsWith("Mozilla/") ? BOT.exec(userAgent)?.[1] : undefined;
  const text = bot === undefined ? userAgent : `${bot}; ${userAgent}`;
  const shared = new Map<string, string>();
  for (const [whole, part = ""] of text.matchAll(PRODUCT_OR_COMMENT)) {
    const decoded = decode(part);
    const named = decoded.replace(VERSION_SUFFIX, "");
    const name = named.trim();
    const rest = decoded.slice(named.length) + decode(whole.slice(part.length));
    if (name !== "" && !SHARED_PRODUCTS.has(name.toLowerCase())) return [name, rest];
    if (name !== "" && !shared.has(name)) shared.set(name, rest);
  }
  const name = BROWSERS.find((browser) => shared.has(browser)) ?? shared.keys().next().value ?? "";
  return [name, shared.get(name) ?? ""];
}

function releaseIn(rest: string): string | undefined {
  const [, version = ""] = /^[ /_@-]*v?(\d\S*)/i.exec(rest) ?? [];
  return IDENTIFYING.test(version) ? undefined : RELEASE.exec(version)?.[0];
}

/** Decodes percent-encoding and UTF-8. Fetch turns each byte of a field into a character. */
function decode(text: string): string {
  if (!/[%\x80-\xff]/.test(text)) return text;
  const hex = (byte: string) => `%${byte.charCodeAt(0).toString(16)}`;
  try {
    return decodeURIComponent(text.replace(/[\x80-\xff]/g, hex));
  } catch {
    return text; // neither percent-encoded nor UTF-8
  }
}
