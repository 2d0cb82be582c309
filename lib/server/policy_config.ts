/** The settings of the retirement policies: the common one, and what one route has of its own. */

import type { AfterSunset, BrownoutStatus, Policy, RoutePolicies } from "../lifecycle/policy.ts";
import { definePolicy, PolicyError, type PolicySettings } from "../lifecycle/policy_settings.ts";
import type { Reader } from "./setting_reader.ts";

/** The date from which the samples are deprecated. */
export const SAMPLES_DEPRECATED_AT = "2026-11-21";

/** Variables that nobody sets for a mere trial. Any of them makes `DEPRECATED_AT` required. */
const PRODUCTION = ["DATABASE_URL", "SUNSET_AT", "BROWNOUTS", "DENO_DEPLOY"];

/** The variable of each setting of the policy. `definePolicy()` validates the values. */
const POLICY_VARIABLES: Readonly<Record<keyof PolicySettings, string>> = {
  deprecatedAt: "DEPRECATED_AT",
  sunsetAt: "SUNSET_AT",
  brownouts: "BROWNOUTS",
  brownoutStatus: "BROWNOUT_STATUS",
  afterSunset: "AFTER_SUNSET",
  documentation: "DEPRECATION_DOC",
};

/** The settings that a route may override. */
const ROUTE_OVERRIDES = {
  deprecatedAt: { mayBeNone: false },
  sunsetAt: { mayBeNone: true },
  brownouts: { mayBeNone: true },
} as const;

type DateSetting = keyof typeof ROUTE_OVERRIDES;

/** The values of these settings, common to all routes or overridden by one. */
type DateSettings = Partial<Record<DateSetting, string | undefined>>;

/** Matches the name before an override, as in "2027-06-30,video=2027-12-31". */
const OVERRIDE_NAME = /(?:^|,)\s*([a-z][\w-]*)\s*=/gi;

/**
 * Names that overrides may still have after one of these routes was deleted, so that a server
 * starts. Once every deprecated route is deleted, any name may be left.
 */
const FORMER_NAMES = ["audio", "video"];

/**
 * Reads the settings of the policies.
 *
 * @param user The program that reads them. Only a server that is not on trial needs
 *   `DEPRECATED_AT`.
 * @param paths The paths of the deprecated routes.
 * @returns The settings; `undefined` if the common policy is not valid.
 */
export function readPolicyConfig(
  reader: Reader,
  user: "server" | "command",
  paths: readonly string[],
) {
  const { get, expect } = reader;
  /** Whether nobody has chosen a date for the deprecation. */
  const isDeprecationUnset = get("DEPRECATED_AT") === undefined;
  const reason = PRODUCTION.find((name) => (get(name) ?? "none") !== "none");
  if (user === "server" && isDeprecationUnset && reason !== undefined && paths.length > 0) {
    const date = 'the ISO 8601 date from which the old paths are deprecated, like "2026-11-21"';
    expect("DEPRECATED_AT", `${date}, since ${reason} is set`, undefined);
  }
  const policies = readPolicies(reader, paths);
  return policies && { ...policies, isDeprecationUnset };
}

/** Reads the common policy, and the policy of each deprecated route. */
function readPolicies(reader: Reader, paths: readonly string[]) {
  const { get, expect } = reader;
  const pathsByName = new Map(
    paths.map((path) => [/([\w-]+)(?:\/:\w+)?$/.exec(path)?.[1] ?? path, path]),
  );
  const names = new Set([...pathsByName.keys(), ...FORMER_NAMES]);
  const commonValues: DateSettings = {};
  const valuesByName = new Map<string, DateSettings>();
  for (const setting of Object.keys(ROUTE_OVERRIDES) as DateSetting[]) {
    const variable = POLICY_VARIABLES[setting];
    const text = get(variable);
    const { common, overrides } = parseOverridable(text ?? "");
    const isNone = (value?: string) => value === "none" && ROUTE_OVERRIDES[setting].mayBeNone;
    commonValues[setting] = isNone(common) ? undefined : common;
    if (text !== undefined && common === undefined && setting === "deprecatedAt") {
      expect(variable, "a date for all routes before that of one", text);
    }
    for (const { name, value } of overrides) {
      const values = valuesByName.get(name) ?? {};
      if (paths.length > 0 && !names.has(name)) {
        expect(variable, `"${[...names].join('" or "')}" before "="`, name);
      } else if (Object.hasOwn(values, setting)) {
        expect(variable, `one value of "${name}"`, `${name}=${value}`);
      }
      values[setting] = isNone(value) ? undefined : value;
      valuesByName.set(name, values);
    }
  }
  const policy = readPolicy(reader, commonValues);
  const ownPolicies = new Map<string, Policy>();
  for (const [name, values] of valuesByName) {
    const path = pathsByName.get(name);
    const ownPolicy = path && readPolicy(reader, { ...commonValues, ...values }, name);
    if (ownPolicy) ownPolicies.set(path, ownPolicy);
  }
  if (policy === undefined) return undefined;
  const policies: RoutePolicies = Object.fromEntries(
    paths.map((path) => [path, ownPolicies.get(path) ?? policy]),
  );
  return { policy, policies };
}

/** The parts of a variable's value. */
interface Overridable {
  /** The value for all routes, if there is one. */
  readonly common: string | undefined;
  /** The values for one route each, in the same order; a name may occur more than once. */
  readonly overrides: readonly { readonly name: string; readonly value: string }[];
}

/** Parses the value of a variable that routes may override, like "2027-06-30,video=2027-12-31". */
function parseOverridable(text: string): Overridable {
  const heads = [...text.matchAll(OVERRIDE_NAME)];
  const overrides = heads.map((head, index) => {
    const end = heads[index + 1]?.index; // of the value: where the next override begins
    return { name: head[1] ?? "", value: text.slice(head.index + head[0].length, end).trim() };
  });
  return { common: text.slice(0, heads[0]?.index) || undefined, overrides };
}

/** @param route The name of the route for errors; left out for the common policy. */
function readPolicy(
  { get, expect }: Reader,
  { deprecatedAt, sunsetAt, brownouts }: DateSettings,
  route?: string,
): Policy | undefined {
  const valueOf = (setting: keyof PolicySettings) => get(POLICY_VARIABLES[setting]);
  // The default must not make a chosen date invalid.
  const defaultDate = sunsetAt ?? brownouts ? "1970-01-01" : SAMPLES_DEPRECATED_AT;
  const status = valueOf("brownoutStatus") ?? "";
  try {
    return definePolicy({
      deprecatedAt: deprecatedAt ?? defaultDate,
      sunsetAt,
      brownouts: brownouts?.split(",").map((text) => text.trim()),
      // definePolicy() validates these.
      brownoutStatus: (/^\d{3}$/.test(status) ? Number(status) : status || undefined) as
        | BrownoutStatus
        | undefined,
      afterSunset: valueOf("afterSunset") as AfterSunset | undefined,
      documentation: valueOf("documentation") ?? "/deprecation",
    });
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const { setting, value, expected } of error.issues) {
      const [name] = setting.split("["); // the variable holds the whole list
      expect(POLICY_VARIABLES[name as keyof PolicySettings], expected, value, route);
    }
  }
}
