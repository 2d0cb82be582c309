/** Language tags (RFC 5646). Subtags are never replaced by preferred ones. */

/** RFC 5646 §2.1, `langtag` and `privateuse`; no language is registered with four letters or more. */
const WELL_FORMED = new RegExp(
  "^(?:" +
    "[a-z]{2,3}(?:-[a-z]{3}){0,3}" + // language, extended language
    "(?:-[a-z]{4})?" + // script
    "(?:-(?:[a-z]{2}|[0-9]{3}))?" + // region
    "(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*" + // variants
    "(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*" + // extensions
    "(?:-x(?:-[a-z0-9]{1,8})+)?" +
    "|x(?:-[a-z0-9]{1,8})+" +
    ")$",
);

/**
 * Parses a language tag, except the irregular ones registered before there was a grammar.
 *
 * @returns The tag in conventional case (RFC 5646 §2.1.1), or `undefined` if it is not well-formed.
 */
export function parseLanguageTag(text: string): string | undefined {
  const tag = text.toLowerCase();
  if (!WELL_FORMED.test(tag)) return undefined;
  const subtags = tag.split("-");
  const singleton = subtags.findIndex(({ length }) => length === 1);
  return subtags.map((subtag, at) => {
    if (at === 0 || (singleton >= 0 && at > singleton)) return subtag;
    if (subtag.length === 2) return subtag.toUpperCase();
    return /^[a-z]{4}$/.test(subtag) ? subtag[0]?.toUpperCase() + subtag.slice(1) : subtag;
  }).join("-");
}
