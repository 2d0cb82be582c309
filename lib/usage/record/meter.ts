/** Counts calls to deprecated routes by client. Counts stay in memory until a flush takes them. */

import { dayOf, formatInstant } from "../../http/timestamp.ts";
import { OTHER } from "../../lifecycle/user_agent.ts";
import type { Moment, Policy } from "../../lifecycle/policy.ts";
import { callerOf, ClientNames, PROBE_PREFIX } from "./client_names.ts";
import type { Impact, UsageCount } from "./records.ts";

/** Responses that are counted together. */
export interface ResponseClass {
  readonly route: string;
  /** The route's policy when the request arrived. */
  readonly policy: Pick<Policy, "brownouts">;
  readonly method: string;
  /** The route's phase when the request arrived. */
  readonly moment: Moment;
  readonly status: number;
  /** Whether the removal breaks these calls. */
  readonly breaks: boolean;
}

/** Counts the responses of one class, by client. */
export interface Counter {
  /**
   * Counts one response.
   *
   * @param fields The fields of the request. They identify the client.
   * @param id The client's id, if it has one. Default: the value of the operator's field.
   */
  count(fields: Headers, id?: string): void;
}

type Calls = UsageCount & { calls: number };

/** A counter with its counts, by client and then by release. */
interface ClientCounter extends Counter {
  readonly common: Omit<UsageCount, "client" | "release" | "calls">;
  readonly counts: Map<string, Map<string, Calls>>;
}

/**
 * The methods that are counted under their own names (RFC 9110 §9.3, RFC 5789). Clients can invent
 * others.
 */
const COUNTED_METHODS = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
]);

export class UsageMeter {
  /** Few, because unknown methods count as one, and statuses by class, except some 4xx. */
  readonly #counters = new Map<string, ClientCounter>();
  readonly #names = new ClientNames();
  readonly #field: string | undefined;
  readonly #onFirst: () => void;
  #isEmpty = true;

  /**
   * @param field The name of the request field that identifies clients to the operator, if any.
   * @param onFirst Called at the first count since the last were taken.
   */
  constructor(field?: string, onFirst = () => {}) {
    this.#field = field;
    this.#onFirst = onFirst;
  }

  /** Whether nothing was counted since the last counts were taken. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Returns the counter for a class of responses. It remains valid, so callers may retain it. */
  counterFor(responses: ResponseClass): Counter {
    const { route, policy, breaks, moment: { phase, until } } = responses;
    const method = COUNTED_METHODS.has(responses.method) ? responses.method : OTHER;
    // Who was answered 404, say, may have read it as an answer, so it is told from 401 and the like.
    const isClientError = !breaks && responses.status >= 400 && responses.status < 500;
    const status = isClientError
      ? String(responses.status)
      : `${Math.floor(responses.status / 100)}xx`;
    const impact: Impact = breaks ? "breaking" : "none";
    // Calls in different brownouts are counted separately.
    const start = phase === "brownout"
      ? policy.brownouts.find(({ end }) => end === until)?.start
      : undefined;
    const key = `${route} ${method} ${phase} ${start} ${status} ${impact}`;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      const brownout = start === undefined ? "" : formatInstant(start);
      const made: ClientCounter = {
        common: { route, method, phase, brownout, status, impact },
        counts: new Map(),
        count: (fields, id) => this.#count(made, fields, id ?? this.#idIn(fields)),
      };
      this.#counters.set(key, counter = made);
    }
    return counter;
  }

  /** Returns the value of the operator's field. */
  #idIn(fields: Headers): string | undefined {
    return this.#field === undefined ? undefined : fields.get(this.#field) ?? undefined;
  }

  #count({ common, counts }: ClientCounter, fields: Headers, id: string | undefined): void {
    const caller = callerOf(fields, id);
    const isProbe = caller.name.startsWith(PROBE_PREFIX);
    const impact = isProbe ? "none" : common.impact; // a probe is no call
    const client = isProbe ? this.#names.probeFor(caller.name) : this.#names.nameFor(caller.name);
    const hasRelease = client === caller.name && impact === "breaking";
    const release = hasRelease ? this.#names.releaseFor(client, caller.release) : "";
    if (this.#isEmpty) {
      this.#isEmpty = false;
      this.#onFirst();
    }
    const releases = counts.get(client) ?? new Map<string, Calls>();
    const count = releases.get(release);
    if (count === undefined) {
      releases.set(release, { ...common, impact, client, release, calls: 1 });
      counts.set(client, releases);
    } else {
      count.calls++;
    }
  }

  /** Marks the name of a client as known, so that its calls keep their own rows. */
  know(client: string): void {
    this.#names.know(client);
  }

  /**
   * Returns the counts since the last call of this method, and resets them. Several counts can have
   * the same key.
   *
   * @param now Milliseconds since the epoch. The limits on new names are reset when the day
   *   changes.
   */
  take(now: number): UsageCount[] {
    this.#isEmpty = true;
    this.#names.beginDay(dayOf(now));
    const counters = [...this.#counters.values()];
    const clients = counters.flatMap(({ counts }) => [...counts.values()]);
    for (const { counts } of counters) counts.clear();
    return clients.flatMap((releases) => [...releases.values()]);
  }
}
