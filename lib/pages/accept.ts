/** The preference between HTML and JSON in Accept (RFC 9110 §12.5.1). */

import { accepts } from "@std/http/negotiation";

/** The length from which the field is ignored, because reading it takes long. */
const MAX_LENGTH = 1_000;

/** Matches a quoted string, which may contain commas and semicolons. */
const QUOTED = /"(?:[^"\\]|\\.)*"?/g;

/** Matches a valid weight, of any precision. */
const WEIGHT = /^q=(?:0(?:\.\d*)?|1(?:\.0*)?)$/;

/**
 * Returns whether to represent a resource in JSON rather than in HTML. That is HTML unless the
 * request prefers JSON, or excludes HTML and not JSON. Any type with the suffix `+json` counts as
 * JSON, and no parameter but the weight matters.
 */
export function prefersJson(headers: Pick<Headers, "get">): boolean {
  const field = headers.get("accept") ?? "";
  const members = field.length > MAX_LENGTH
    ? []
    : field.replaceAll(QUOTED, "").split(",").map(withoutParameters);
  // The last member lets a type that the request does not name stand in for one that it excludes.
  const Accept = [...members, "*/*;q=0.0001"].join();
  const request = { headers: new Headers({ Accept }) };
  return accepts(request, "text/html", "application/json") === "application/json";
}

/** Returns a member of the list with no parameter but its weight, and JSON by its usual name. */
function withoutParameters(member: string): string {
  const [type = "", ...parameters] = member.toLowerCase().split(";").map((part) => part.trim());
  const weight = parameters.find((parameter) => WEIGHT.test(parameter));
  const known = type.endsWith("+json") ? "application/json" : type;
  return weight === undefined ? known : `${known};${weight}`;
}
