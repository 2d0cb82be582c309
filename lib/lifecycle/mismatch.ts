/** Messages about invalid values. */

import { readOr } from "./any_value.ts";
import { millisecondsOf } from "./instant.ts";

/** Returns a message with the value expected of a setting or option, and the value given. */
export function mismatch(name: string, value: unknown, expected: string): string {
  return `${name}: expected ${expected}, got ${describeValue(value)}`;
}

/** Throws if an option is unknown, because a misspelt one would silently count as absent. */
export function requireNames(options: object, names: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(mismatch("options", unknown, `only ${names.join(", ")}`));
}

export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return readOr("[object]", () => {
    const isOther = Object(value) === value && millisecondsOf(value) === undefined;
    return isOther ? Object.prototype.toString.call(value) : String(value); // like "[object Array]"
  });
}
