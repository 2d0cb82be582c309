/** The sentences on holds. */

import { notableHolds } from "../../lifecycle/hold.ts";
import type { Policy, PolicyHold } from "../../lifecycle/policy.ts";
import type { UsageReport } from "../verdict/report.ts";
import { enumerated, instant, p, type Phrase, textOf } from "./phrase.ts";
import { routesText } from "./wording.ts";

/** Lists the holds of a report's period, with their routes. Equal ones are listed once. */
export function holdLines({ policies, routes, from, asOf }: UsageReport): Phrase[] {
  const start = Date.parse(from);
  const lines = new Map<string, { readonly text: Phrase; readonly held: string[] }>();
  for (const { route } of routes) {
    for (const hold of notableHolds(policies[route] ?? {}, asOf)) {
      if (hold.end < start) continue;
      const text = holdText(hold);
      const { held = [] } = lines.get(textOf(text)) ?? {};
      lines.set(textOf(text), { text, held: [...held, route] });
    }
  }
  return [...lines.values()].map(({ text, held }) => p`${routesText(held)}: ${text}`);
}

/** Formats a hold, e.g. "held until … (billing is down): the brownout from … to … was called off". */
function holdText(hold: PolicyHold): Phrase {
  const effects = effectTexts(hold);
  const calledOff = effects.length === 0 ? [] : p`: ${enumerated(effects)}`;
  return p`held until ${instant(hold.end)} (${hold.because})${calledOff}`;
}

/** Says what a hold called off. */
export function effectTexts({ brownouts, sunsetAt }: PolicyHold): Phrase[] {
  const effects = brownouts.map(({ start, end }) =>
    p`the brownout from ${instant(start)} to ${instant(end)} was called off`
  );
  if (sunsetAt === undefined) return effects;
  return [...effects, p`the sunset at ${instant(sunsetAt)} was put off until then`];
}

/** Formats what holds on a policy say at an instant. */
export function holdTexts(policy: Pick<Policy, "holds">, instant: number): string[] {
  return notableHolds(policy, instant).map((hold) => textOf(holdText(hold)));
}
