/** Link (RFC 8288), read tolerantly. */

/** The parts of a link that it has. The target and the anchor, its context, are URL references. */
export interface Link {
  target?: string;
  rel?: string[]; // in lower case
  anchor?: string;
}

/** A target, a quoted string, a delimiter, or a token; anything between them is skipped. */
const PART = /<([^<>]*)>|"((?:[^"\\]|\\.)*)"|[,;=]|[^\s<,;="]+/g;

/** Parses the value of a Link field. Malformed parts are skipped, the links kept. */
export function parseLinks(value: string): Link[] {
  const links: Link[] = [];
  let link: Link | undefined;
  let name = "";
  let isValue = false;
  for (const [text, target, quoted] of value.matchAll(PART)) {
    if (text === ",") link = undefined;
    else if (link === undefined) links.push(link = {});
    if (link === undefined) continue;
    if (target !== undefined) link.target ??= target;
    else if (text === "=") isValue = true;
    else if (text === ";") [name, isValue] = ["", false];
    else if (!isValue) name = text.toLowerCase();
    else {
      const argument = quoted?.replaceAll(/\\(.)/g, "$1") ?? text;
      // Only the first rel counts (§3.3).
      if (name === "rel") link.rel ??= argument.toLowerCase().split(/\s+/).filter(Boolean);
      if (name === "anchor") link.anchor ??= argument;
      [name, isValue] = ["", false];
    }
  }
  return links;
}
