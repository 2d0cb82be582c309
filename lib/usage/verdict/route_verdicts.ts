/** The verdicts of a report: on each route, on all of them, and on all that are unknown. */

import type { Evidence } from "./doubts.ts";
import type { HiddenCalls } from "./hidden_calls.ts";
import { type PeriodLengths, recoveryOf } from "./recovery.ts";
import { callsIn, type ClientUsage } from "./sums.ts";
import { judge, type UnknownVerdict, type Verdict } from "./verdict.ts";

/** The verdict on one route. It is what `--route` with this route says. */
export type RouteVerdict = Verdict & {
  readonly route: string;
  /** The number of calls, except those of clients that are ignored. */
  readonly calls: number;
  readonly clients: readonly Pick<ClientUsage, "client" | "calls" | "last">[];
  /** The first day on which an unknown verdict can be clear, if it can be known. */
  readonly recovery: string | undefined;
};

/** The verdicts of a report. */
export interface Verdicts {
  /** The verdict on all routes. */
  readonly verdict: Verdict;
  /** The verdict on each of them. */
  readonly verdicts: readonly RouteVerdict[];
  /** The verdict on all routes that are unknown. Others may be called. */
  readonly unknown: UnknownVerdict | undefined;
  /** The first day on which an unknown verdict can be clear, if it can be known. */
  readonly recovery: string | undefined;
}

/**
 * Judges routes.
 *
 * @param routes The clients of each route, except those that are ignored.
 */
export function judgeRoutes(
  evidence: Evidence,
  routes: readonly { readonly route: string; readonly clients: readonly ClientUsage[] }[],
  { from, atMost, trustStops, hidden, lengths }: {
    /** The start of the period, in milliseconds since the epoch. */
    readonly from: number;
    /** The number of calls that a verdict allows. */
    readonly atMost: number;
    /** Whether the operator vouches for all stops, and for what is like them. */
    readonly trustStops: boolean;
    readonly hidden: readonly HiddenCalls[];
    readonly lengths: PeriodLengths;
  },
): Verdicts {
  const judgeUncalled = (routes: readonly string[], hidden: readonly HiddenCalls[]) =>
    judge(evidence, { routes, from, trustStops, hidden });
  const hiddenOn = (routes: readonly string[]) =>
    hidden.filter(({ route }) => routes.includes(route));
  const verdicts = routes.map(({ route, clients }): RouteVerdict => {
    const calls = callsIn(clients);
    const verdict = calls > atMost ? CALLED : judgeUncalled([route], hiddenOn([route]));
    const callers = clients.map(({ client, calls, last }) => ({ client, calls, last }));
    return { route, calls, clients: callers, ...verdict, recovery: recoveryOf(verdict, lengths) };
  });
  const names = routes.map(({ route }) => route);
  const verdict = callsIn(verdicts) > atMost ? CALLED : judgeUncalled(names, hidden);
  const open = verdicts.filter(({ state }) => state === "unknown").map(({ route }) => route);
  const rest = verdict.state === "called" && open.length > 0
    ? judgeUncalled(open, hiddenOn(open))
    : verdict;
  return {
    verdict,
    verdicts,
    unknown: rest.state === "unknown" ? rest : undefined,
    recovery: recoveryOf(verdict, lengths),
  };
}

const CALLED = { state: "called" } as const;
