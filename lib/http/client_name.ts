/** Client names: what a client calls itself in User-Agent (RFC 9110 §10.1.5). */

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

/** What is not part of a product's name: a version without a slash, or the scheme of a URL. */
const REST = / v?\d.*|[-_]?v?\d{1,4}\.\d.*| \+?https?$/;

/** What may identify a person, an installation or an item: numbers, hashes, UUIDs, emails, JWTs. */
export const IDENTIFYING = /\d{6}|[\da-f]{8}|@|eyJ[\w-]{8}/i;

/**
 * Returns the name under which to count a client: the first product that is its own, without the
 * version, or else its browser. It has at most 64 characters, all printable, and contains no
 * personal data, address or token.
 *
 * @param userAgent e.g. `Pocket%20Casts/7.5 CFNetwork/1410`, which gives "Pocket Casts".
 * @returns "(no User-Agent)" without a User-Agent, "(other)" if it names no product, or one that
 *   may identify a person or an installation.
 */
export function clientOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return NONE;
  const text = userAgent.slice(0, 256); // at a bounded cost
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = productOf(text).slice(0, 64).replace(/[\p{C}\p{Z}]+/gu, " ").trim();
  const client = /\p{L}/u.test(name) && !IDENTIFYING.test(name) ? name : OTHER;
  if (names.size >= MAX_NAMES) names.clear();
  names.set(text, client);
  return client;
}

/** The names of recent User-Agents: parsing one costs as much as the rest of counting. */
const names = new Map<string, string>();
const MAX_NAMES = 1_000;

function productOf(userAgent: string): string {
  const bot = userAgent.startsWith("Mozilla/") ? BOT.exec(userAgent)?.[1] : undefined;
  const text = bot === undefined ? userAgent : `${bot}; ${userAgent}`;
  const shared: string[] = [];
  for (const [, part = ""] of text.matchAll(PART)) {
    const name = decode(part).replace(REST, "").trim();
    if (name !== "" && !SHARED.has(name.toLowerCase())) return name;
    if (name !== "") shared.push(name);
  }
  return BROWSERS.find((browser) => shared.includes(browser)) ?? shared[0] ?? "";
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
