/** The sums of a ledger's rows: the calls of each client, and of each route by day. */

import type { BrownoutStatus, Phase } from "../../lifecycle/policy.ts";
import { PROBE_PREFIX } from "../record/client_names.ts";
import type { UsageRow } from "../record/records.ts";

/** Calls by phase. */
export type PhaseCalls = Partial<Record<Phase, number>>;

export interface ClientUsage {
  readonly client: string;
  readonly calls: number;
  /** The number of days with calls. */
  readonly days: number;
  /** The first day of the period with a call. */
  readonly first: string;
  /** When the last call was recorded, in milliseconds since the epoch. */
  readonly last: number;
  readonly routes: readonly string[];
  readonly phases: Readonly<PhaseCalls>;
  /** The calls in each brownout, in chronological order. */
  readonly brownouts: readonly BrownoutCalls[];
  /**
   * The releases of an app, or the apps of any other client; most calls first. Calls without a
   * release on record are in none of them.
   */
  readonly releases: readonly ReleaseUsage[];
}

/** The other requests of one client to a route that were answered with one status, 400 to 499. */
export interface ClientErrors {
  readonly route: string;
  /** The status, e.g. `404`. */
  readonly status: string;
  readonly client: string;
  readonly requests: number;
}

/** The calls in a brownout that got one status. */
interface BrownoutCalls {
  readonly start: string;
  /** The status of the refusal; left out for calls that were not refused. */
  readonly status?: BrownoutStatus;
  readonly calls: number;
}

/** The status of a refusal in a brownout, by its class. */
const REFUSED: Readonly<Record<string, BrownoutStatus>> = { "4xx": 410, "5xx": 503 };

type ReleaseUsage = Pick<UsageRow, "release" | "calls" | "last">;

/** The sums of rows. */
export interface Sums {
  readonly routes: readonly {
    readonly route: string;
    readonly otherRequests: number;
    readonly days: readonly {
      readonly day: string;
      readonly calls: number;
      readonly byPhase: PhaseCalls;
    }[];
    readonly clients: readonly ClientUsage[];
  }[];
  readonly clients: readonly ClientUsage[];
  readonly clientErrors: readonly ClientErrors[];
  readonly probes: readonly { readonly probe: string; readonly requests: number }[];
}

/** Adds up the rows of the listed routes: by route and day, by client, and by probe. */
export async function addUp(
  rows: AsyncIterable<UsageRow>,
  { listed, period, client }: {
    readonly listed: readonly string[];
    /** The days, in order. */
    readonly period: readonly string[];
    /** The only client to add up; left out for all. */
    readonly client: string | undefined;
  },
): Promise<Sums> {
  const indexes = new Map(period.map((day, index) => [day, index]));
  const routes = listed.map((route) => {
    const days = period.map((day) => ({ day, calls: 0, byPhase: {} as PhaseCalls }));
    return { route, otherRequests: 0, days, clients: new ClientSums() };
  });
  const clients = new ClientSums();
  const probes = new Map<string, number>();
  const clientErrors = new Map<string, ClientErrors>();
  for await (const row of rows) {
    const route = routes.find(({ route }) => route === row.route);
    if (route === undefined || client !== undefined && row.client !== client) continue;
    if (row.client.startsWith(PROBE_PREFIX)) {
      add(probes, row.client, row.calls);
    } else if (row.impact === "none") {
      route.otherRequests += row.calls;
      if (!isClientError(row)) continue;
      const { status, client, calls } = row;
      const key = [row.route, status, client].join("\0");
      const requests = calls + (clientErrors.get(key)?.requests ?? 0);
      clientErrors.set(key, { route: row.route, status, client, requests });
    } else {
      // A day after today comes from a database's clock that was ahead. It counts as today.
      const day = route.days[indexes.get(row.day) ?? period.length - 1];
      if (day !== undefined) {
        day.calls += row.calls;
        day.byPhase[row.phase] = (day.byPhase[row.phase] ?? 0) + row.calls;
      }
      clients.add(row);
      route.clients.add(row);
    }
  }
  return {
    routes: routes.map(({ clients, ...usage }) => ({ ...usage, clients: clients.usages() })),
    clients: clients.usages(),
    clientErrors: [...clientErrors.values()].sort((a, b) => b.requests - a.requests),
    probes: [...probes].map(([probe, requests]) => ({ probe, requests })),
  };
}

/** Returns whether other requests were answered with a client error (RFC 9110 §15.5). */
function isClientError({ status, method }: UsageRow): boolean {
  return status.startsWith("4") && method !== "OPTIONS"; // which is no call, whatever its status
}

/** Adds up the calls of each client. */
class ClientSums {
  readonly #sums = new Map<string, ClientSum>();

  add(row: UsageRow): void {
    const sum = this.#sums.get(row.client) ?? new ClientSum(row);
    this.#sums.set(row.client, sum);
    sum.add(row);
  }

  /** Returns the clients; most calls first. */
  usages(): ClientUsage[] {
    return [...this.#sums.values()].map((sum) => sum.usage())
      .sort((a, b) => b.calls - a.calls || (a.client < b.client ? -1 : 1));
  }
}

/** Adds up the calls of one client. */
class ClientSum {
  readonly #client: string;
  #first: string;
  #calls = 0;
  #last = -Infinity;
  readonly #days = new Set<string>();
  readonly #routes = new Set<string>();
  readonly #phases: PhaseCalls = {};
  readonly #brownouts = new Map<string, BrownoutCalls>();
  readonly #releases = new Map<string, ReleaseUsage>();

  constructor({ client, day }: UsageRow) {
    this.#client = client;
    this.#first = day;
  }

  add(row: UsageRow): void {
    const { day, route, phase, brownout, status: statusClass, calls, last, release } = row;
    this.#calls += calls;
    this.#last = Math.max(this.#last, last);
    if (day < this.#first) this.#first = day; // several records are read one after another
    this.#days.add(day);
    this.#routes.add(route);
    this.#phases[phase] = (this.#phases[phase] ?? 0) + calls;
    if (brownout !== "") this.#addBrownout({ start: brownout, calls, ...refusedWith(statusClass) });
    if (release === "") return;
    const before = this.#releases.get(release) ?? { calls: 0, last };
    this.#releases.set(release, {
      release,
      calls: before.calls + calls,
      last: Math.max(before.last, last),
    });
  }

  #addBrownout(brownout: BrownoutCalls): void {
    const name = `${brownout.start} ${brownout.status ?? ""}`;
    const before = this.#brownouts.get(name)?.calls ?? 0;
    this.#brownouts.set(name, { ...brownout, calls: before + brownout.calls });
  }

  usage(): ClientUsage {
    return {
      client: this.#client,
      calls: this.#calls,
      days: this.#days.size,
      first: this.#first,
      last: this.#last,
      routes: [...this.#routes].sort(),
      phases: this.#phases,
      brownouts: [...this.#brownouts].sort().map(([, brownout]) => brownout),
      releases: [...this.#releases.values()].sort((a, b) => b.calls - a.calls || b.last - a.last),
    };
  }
}

function refusedWith(statusClass: string): Pick<BrownoutCalls, "status"> {
  const status = REFUSED[statusClass];
  return status === undefined ? {} : { status };
}

function add(sums: Map<string, number>, name: string, calls: number): void {
  sums.set(name, (sums.get(name) ?? 0) + calls);
}

export function callsIn(usages: readonly { readonly calls: number }[]): number {
  return usages.reduce((sum, { calls }) => sum + calls, 0);
}
