/** Reading the head of a request, of which platforms may leave out any part, or give it another form. */

import { readOr } from "../any_value.ts";
import type { RequestHead } from "./options.ts";

/** Reads the head of a request. What is missing, has another type or cannot be read is absent. */
export function readHead(request: unknown): RequestHead {
  const { method, url, headers } = membersOf(request, ["method", "url", "headers"]);
  return { method: textOr("GET", method), url: textOr("", url), headers: headersOf(headers) };
}

/** Returns members of an object. Those that cannot be read are undefined. */
export function membersOf<Name extends string>(
  object: unknown,
  names: readonly Name[],
): Record<Name, unknown> {
  const read = (name: Name) => readOr(undefined, () => Object(object)[name] as unknown);
  return Object.fromEntries(names.map((name) => [name, read(name)])) as Record<Name, unknown>;
}

/** Returns a value if it is text that is not empty. */
export function textOr(fallback: string, value: unknown): string {
  return typeof value === "string" && value !== "" ? value : fallback;
}

/** Returns fields as `Headers`, without those that it refuses. */
export function headersOf(fields: unknown): Headers {
  // An instance may fail, as a proxy of one does on Node.
  if (readOr(false, () => fields instanceof Headers && typeof fields.has("a") === "boolean")) {
    return fields as Headers;
  }
  const headers = new Headers();
  const pairs = readOr([], () => {
    const list = Object(fields);
    return typeof list[Symbol.iterator] === "function" ? [...list] : Object.entries(list);
  });
  for (const pair of pairs) {
    readOr(undefined, () => {
      const [name, value] = pair as [string, unknown];
      if (value !== undefined && value !== null) headers.append(name, String(value));
    });
  }
  return headers;
}
