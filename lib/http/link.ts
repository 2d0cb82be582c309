/** Tolerant parsing of the Link field (RFC 8288). */

/** A link. The target and the anchor (the link's context) are URL references. */
interface Link {
  target?: string;
  rel?: string[]; // in lower case
  anchor?: string;
}

/**
 * Matches a target, a comma, a quoted string, or a parameter with its value, if it has one.
 * Anything between these is skipped. An unclosed quoted string extends to the end (RFC 8288 §B.4),
 * because resuming after each quote would take quadratic time.
 */
const LINK_PART =
  /<([^<>]*)>|,|"(?:[^"\\]|\\.?)*"?|([^\s<,;="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.?)*)"?|([^\s<,;="]+))?)?/g;

/** The maximum number of links read from a field. No honest server sends as many. */
const MAX_LINKS = 1000;

/** The maximum number of relations read from a link, likewise. */
const MAX_RELATIONS = 1000;

/** Parses the value of a Link field. Skips the malformed parts of a link, and keeps the rest. */
export function parseLinks(value: string): Link[] {
  const links: Link[] = [];
  let link: Link | undefined;
  for (const [text, target, name = "", quoted, token] of value.matchAll(LINK_PART)) {
    if (text === ",") link = undefined;
    else if (link === undefined) links.push(link = {});
    if (link === undefined && links.length === MAX_LINKS) break;
    if (link === undefined) continue;
    if (target !== undefined) link.target ??= target;
    const argument = quoted?.replaceAll(/\\(.)/g, "$1") ?? token;
    if (argument === undefined) continue;
    const parameter = name.toLowerCase();
    // Only the first rel counts (§3.3).
    if (parameter === "rel") {
      link.rel ??= argument.toLowerCase().split(/\s+/, MAX_RELATIONS).filter(Boolean);
    }
    if (parameter === "anchor") link.anchor ??= argument;
  }
  return links;
}
