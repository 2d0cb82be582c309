/** Messages about values that are not valid. */

import { millisecondsOf } from "./instant.ts";

/** Says of a setting or option what is expected, and what was given. */
export function mismatch(name: string, value: unknown, expected: string): string {
  return `${name}: expected ${expected}, got ${describeValue(value)}`;
}

/** Describes a value in a message. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  const isOther = Object(value) === value && millisecondsOf(value) === undefined;
  return isOther ? Object.prototype.toString.call(value) : String(value); // like "[object Array]"
}
