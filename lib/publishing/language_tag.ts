/**
 * Language tags (RFC 5646). Subtags are never replaced by preferred ones.
 */

/** RFC 5646 §2.1, `langtag` and `privateuse`; no language is registered with four letters or more. */
const WELL_FORMED = new RegExp(
  "^(?:" +
    "[a-z]{2,3}(?:-[a-z]{3}){0,3}" + // language, extended language
    "(?:-[a-z]{4})?" + // script
    "(?:-(?:[a-z]{2}|[0-9]{3}))?" + // region
    "(?<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)" +
    "(?<extensions>(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*)" +
    "(?:-x(?:-[a-z0-9]{1,8})+)?" +
    "|x(?:-[a-z0-9]{1,8})+" +
    ")$",
);

/** RFC 5646 §2.1, `irregular`: registered before there was a grammar. */
const IRREGULAR = new Set([
  ...["en-gb-oed", "i-ami", "i-bnn", "i-default", "i-enochian", "i-hak", "i-klingon", "i-lux"],
  ...["i-mingo", "i-navajo", "i-pwn", "i-tao", "i-tay", "i-tsu", "sgn-be-fr", "sgn-be-nl"],
  "sgn-ch-de",
]);

/**
 * Parses a language tag.
 *
 * @returns The tag in conventional case (RFC 5646 §2.1.1), or `undefined` if it is not well-formed,
 *   or repeats a variant or extension (§2.2.9).
 */
export function parseLanguageTag(text: string): string | undefined {
  const tag = text.toLowerCase();
  if (!IRREGULAR.has(tag)) {
    const groups = WELL_FORMED.exec(tag)?.groups;
    if (groups === undefined) return undefined;
    const variants = groups.variants?.split("-").slice(1) ?? [];
    const singletons = groups.extensions?.split("-").filter(({ length }) => length === 1) ?? [];
    if (hasTwice(variants) || hasTwice(singletons)) return undefined;
  }
  const subtags = tag.split("-");
  const singleton = subtags.findIndex(({ length }) => length === 1);
  return subtags.map((subtag, at) => {
    if (at === 0 || (singleton >= 0 && at > singleton)) return subtag;
    if (subtag.length === 2) return subtag.toUpperCase();
    return /^[a-z]{4}$/.test(subtag) ? subtag[0]?.toUpperCase() + subtag.slice(1) : subtag;
  }).join("-");
}

function hasTwice(values: string[]): boolean {
  return new Set(values).size < values.length;
}
