/** Reading settings: values that do not match, and how errors show them. */

import type { z } from "zod";
import { withoutPassword, withoutValue } from "../input/printable.ts";

/** Variables whose values errors must not show. */
const SECRETS = ["DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/**
 * Matches all lines of a value after the first. If a quote was not closed, these are other
 * settings, even secrets.
 */
const LATER_LINES = /[\n\r][^]*/;

/** Returns functions that read variables and collect their faults. */
export function createReader(variable: (name: string) => string | undefined) {
  const faults: string[] = [];
  const get = (name: string) => variable(name) || undefined;
  const expect = (name: string, expected: string, value: unknown, route?: string) => {
    const shown = typeof value !== "string" ? String(value ?? "nothing") : JSON.stringify(
      SECRETS.includes(name)
        ? "…"
        : name === "CLIENT_FIELD"
        ? withoutValue(value)
        : withoutPassword(value.replace(LATER_LINES, "…")),
    );
    const fault = `: expected ${expected}, got ${shown}`;
    if (faults.includes(name + fault)) return; // it is the same for all routes
    faults.push(`${name}${route === undefined ? "" : ` of ${route}`}${fault}`);
  };
  const read = <T>(name: string, expected: string, schema: z.ZodType<T>): T => {
    const { success, data } = schema.safeParse(get(name));
    if (!success) expect(name, expected, get(name));
    return data as T; // not used after a fault
  };
  return { faults, get, expect, read };
}

export type Reader = ReturnType<typeof createReader>;
