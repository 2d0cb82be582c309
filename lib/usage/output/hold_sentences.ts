/** The sentences on holds. */

import { formatInstant } from "../../http/timestamp.ts";
import { notableHolds } from "../../lifecycle/hold.ts";
import type { Policy, PolicyHold } from "../../lifecycle/policy.ts";
import { listOf } from "../../pages/plain_text.ts";
import type { UsageReport } from "../verdict/report.ts";
import { routesText } from "./wording.ts";

/** Lists the holds of a report's period, with their routes. Equal ones are listed once. */
export function holdLines({ policies, routes, from, now }: UsageReport): string[] {
  const start = Date.parse(from);
  const lines = new Map<string, string[]>();
  for (const { route } of routes) {
    for (const hold of notableHolds(policies[route] ?? {}, now)) {
      if (hold.end < start) continue;
      const text = holdText(hold);
      lines.set(text, [...lines.get(text) ?? [], route]);
    }
  }
  return [...lines].map(([text, routes]) => `${routesText(routes)}: ${text}`);
}

/** Formats a hold, e.g. "held until … (billing is down): the brownout from … to … was called off". */
export function holdText(hold: PolicyHold): string {
  const effects = effectTexts(hold);
  return `held until ${formatInstant(hold.end)} (${hold.because})` +
    `${effects.length === 0 ? "" : `: ${listOf(effects)}`}`;
}

/** Says what a hold called off. */
export function effectTexts({ brownouts, sunsetAt }: PolicyHold): string[] {
  const effects = brownouts.map(({ start, end }) =>
    `the brownout from ${formatInstant(start)} to ${formatInstant(end)} was called off`
  );
  if (sunsetAt === undefined) return effects;
  return [...effects, `the sunset at ${formatInstant(sunsetAt)} was put off until then`];
}

/** Formats what holds on a policy say at an instant. */
export function holdTexts(policy: Pick<Policy, "holds">, instant: number): string[] {
  return notableHolds(policy, instant).map(holdText);
}
