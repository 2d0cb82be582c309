/** The verdicts of a report: on each route, on all of them, and on all that are unknown. */

import type { Evidence } from "./doubts.ts";
import type { HiddenCalls } from "./hidden_calls.ts";
import {
  judge,
  type PeriodLengths,
  recoveryOf,
  type UnknownVerdict,
  type Verdict,
} from "./verdict.ts";
import { callsIn, type ClientUsage } from "./sums.ts";
import type { SilentClients } from "./rhythms.ts";

/**
 * The verdict on one route. It is what `--route` with this route says, unless more calls than are
 * allowed came to all routes together: then every route with calls is called.
 */
export type RouteVerdict = Verdict & SilentClients & {
  readonly route: string;
  /** The number of calls, except those of clients that are ignored. */
  readonly calls: number;
  readonly clients: readonly Pick<ClientUsage, "client" | "calls" | "last">[];
  /** The sunset that is announced for the route; `undefined` once it has passed. */
  readonly announcedUntil: number | undefined;
  /** The first day on which an unknown verdict can be clear, if it can be known. */
  readonly recovery: string | undefined;
};

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

/** What a verdict on one route is about. Clients that are ignored are left out. */
interface JudgedRoute extends SilentClients, Pick<RouteVerdict, "route" | "announcedUntil"> {
  readonly clients: readonly ClientUsage[];
}

export function judgeRoutes(
  evidence: Evidence,
  routes: readonly JudgedRoute[],
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
  const judgeUncalled = (routes: readonly JudgedRoute[]) => {
    const asked = routes.map(({ route, due, earlier }) => ({
      route,
      silent: [...due, ...earlier],
    }));
    const names = routes.map(({ route }) => route);
    const found = hidden.filter(({ route }) => names.includes(route));
    return judge(evidence, { routes: asked, from, trustStops, hidden: found });
  };
  const isCalled = routes.reduce((sum, route) => sum + countedCalls(route), 0) > atMost;
  const verdicts = routes.map((asked): RouteVerdict => {
    const { route, clients, due, earlier, announcedUntil } = asked;
    const verdict = isCalled && countedCalls(asked) > 0 ? CALLED : judgeUncalled([asked]);
    return {
      route,
      calls: callsIn(clients),
      clients: clients.map(({ client, calls, last }) => ({ client, calls, last })),
      due,
      earlier,
      announcedUntil,
      ...verdict,
      recovery: recoveryOf(verdict, lengths),
    };
  });
  const verdict = isCalled ? CALLED : judgeUncalled(routes);
  const isOpen = (_: unknown, at: number) => verdicts[at]?.state === "unknown";
  const open = routes.filter(isOpen);
  const rest = verdict.state === "called" && open.length > 0 ? judgeUncalled(open) : verdict;
  return {
    verdict,
    verdicts,
    unknown: rest.state === "unknown" ? rest : undefined,
    recovery: recoveryOf(verdict, lengths),
  };
}

/** Counts the calls in the period, and those on the last day of each client that is due. */
function countedCalls({ clients, due }: JudgedRoute): number {
  return callsIn(clients) + due.reduce((sum, { lastCalls }) => sum + lastCalls, 0);
}

const CALLED = { state: "called" } as const;
