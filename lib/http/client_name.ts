/** Client names and releases: what a client calls itself in User-Agent (RFC 9110 §10.1.5). */

/** The client names of calls without a User-Agent, and of those whose own name is not counted. */
export const [NONE, OTHER] = ["(no User-Agent)", "(other)"];

/** Products that many clients name: browsers, and with them engines and platforms. */
const BROWSERS = ["Chrome", "Safari", "Mobile Safari"];
const SHARED = new Set(
  ("mozilla,compatible,msie,khtml,gecko,like gecko,applewebkit,version,mobile,x64,python,electron," +
    "chrome,chromium,safari,mobile safari,applecoremedia,cfnetwork,darwin,ios,dalvik,android," +
    "linux,linux upnp").split(","),
);

/** A bot in a comment of `Mozilla/5.0`: what follows `compatible;`, or precedes its URL. */
const BOT = /[(;] ?(?:compatible;[ +]*|(?=[^();]+; ?\+http))([^;)]+)/;

/** A URL, a comment (which may hold others), or a product, with its version after a slash. */
const PART = /https?:\S*|\(+(?:[^()]|\([^()]*\))*|([\w%\x80-\xff][^/;,:()[\]]*)(?:\/\S*)?/g;

/** Parts of a product that are not its name: a version without a slash, or the scheme of a URL. */
const REST = / v?\d.*|[-_]?v?\d{1,4}\.\d.*| \+?https?$/;

/** Matches whatever may identify a person, an installation or an item: numbers, hashes, UUIDs, emails, JWTs. */
export const IDENTIFYING = /\d{6}|[\da-f]{8}|@|eyJ[\w-]{8}/i;

/** A version that follows a name. Of what could be an IPv4 address, it has three numbers only. */
const RELEASE =
  /^(?:\d{1,3}(?:\.\d{1,3}){2}(?=\.\d{1,3}(?![\da-z]|\.\d))|\d(?:[\w.+~-]{0,14}\w)?)/i;

/** A client, as it presents itself. */
export interface Product {
  readonly name: string;
  /** The version that follows the name, if there is one. */
  readonly release?: string | undefined;
}

/** Returns the name under which to count a client: see {@linkcode productOf}. */
export function clientOf(userAgent: string | null): string {
  return productOf(userAgent).name;
}

/**
 * Returns the name under which to count a client: the first product that is its own, without the
 * version, or else its browser. It has at most 64 characters, all printable. Its release has at most
 * 16, and begins with a digit. Neither contains an address or a token.
 *
 * @param userAgent e.g. `Pocket%20Casts/7.5 CFNetwork/1410`, which gives "Pocket Casts" and "7.5".
 * @returns "(no User-Agent)" without a User-Agent, "(other)" if it names no product, or one that
 *   may identify a person or an installation. A release that may is left out.
 */
export function productOf(userAgent: string | null): Product {
  if (userAgent === null || userAgent === "") return { name: NONE };
  const text = userAgent.slice(0, 256); // at a bounded cost
  const known = products.get(text);
  if (known !== undefined) return known;
  const [found, rest] = firstIn(text);
  const name = found.slice(0, 64).replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  const isNamed = /\p{L}/u.test(name) && !IDENTIFYING.test(name);
  const product = isNamed ? { name, release: releaseIn(rest) } : { name: OTHER };
  if (products.size >= MAX_PRODUCTS) products.clear();
  products.set(text, product);
  return product;
}

/** The products of recent User-Agents: parsing one costs as much as the rest of counting. */
const products = new Map<string, Product>();
const MAX_PRODUCTS = 1_000;

/** Returns the name of the first product of a client's own, and what follows it. */
function firstIn(userAgent: string): [name: string, rest: string] {
  const bot = userAgent.startsWith("Mozilla/") ? BOT.exec(userAgent)?.[1] : undefined;
  const text = bot === undefined ? userAgent : `${bot}; ${userAgent}`;
  const shared = new Map<string, string>();
  for (const [whole, part = ""] of text.matchAll(PART)) {
    const decoded = decode(part);
    const named = decoded.replace(REST, "");
    const name = named.trim();
    const rest = decoded.slice(named.length) + decode(whole.slice(part.length));
    if (name !== "" && !SHARED.has(name.toLowerCase())) return [name, rest];
    if (name !== "" && !shared.has(name)) shared.set(name, rest);
  }
  const name = BROWSERS.find((browser) => shared.has(browser)) ?? shared.keys().next().value ?? "";
  return [name, shared.get(name) ?? ""];
}

function releaseIn(rest: string): string | undefined {
  const [, version = ""] = /^[ /_-]*v?(\d\S*)/i.exec(rest) ?? [];
  return IDENTIFYING.test(version) ? undefined : RELEASE.exec(version)?.[0];
}

/** Decodes percent-encoding, and UTF-8, each byte of which Fetch turns into a character. */
function decode(text: string): string {
  if (!/[%\x80-\xff]/.test(text)) return text;
  const hex = (byte: string) => `%${byte.charCodeAt(0).toString(16)}`;
  try {
    return decodeURIComponent(text.replace(/[\x80-\xff]/g, hex));
  } catch {
    return text; // neither
  }
}
