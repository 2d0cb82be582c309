/**
 * The true state of items over time, and the responses that are allowed. All times are in
 * milliseconds since the epoch, by the machine's clock.
 */

import type { Token } from "../../lib/storage/token.ts";

/** The true state of an item, as a status. */
export type Status = 404 | 200 | 410;

/** A response of a server. */
export interface Observation {
  /** The server process. */
  readonly server: string;
  readonly method: "HEAD" | "GET";
  readonly token: Token;
  readonly status: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A change of an item, at some time between its start and the report that it was done. */
interface Change {
  readonly status: Status;
  readonly begunAt: number;
  doneAt: number;
}

/** The states of an item, in the order in which it goes through them. */
const STATES: readonly number[] = [404, 200, 410] satisfies Status[];

/** Milliseconds by which two readings of the clock may be out of order. */
const TICK = 2;

/** Checks responses against the truth. */
export class Truth {
  readonly #bound: number;
  readonly #changes = new Map<Token, Change[]>();
  /** The latest state that a response showed, and when, by server and token. */
  readonly #shown = new Map<string, { readonly state: number; readonly at: number }>();

  /** @param bound Milliseconds within which a change must show. */
  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Starts a change. Until it is done, both the old and the new state are true. */
  begin(token: Token, status: Status, begunAt: number): void {
    const changes = this.#changes.get(token) ?? [];
    changes.push({ status, begunAt, doneAt: Infinity });
    this.#changes.set(token, changes);
  }

  /** Ends the latest change. */
  end(token: Token, doneAt: number): void {
    const change = this.#changes.get(token)?.at(-1);
    if (change !== undefined) change.doneAt = doneAt;
  }

  /**
   * Returns the allowed statuses of a response: more than one, if the item changed at that time.
   */
  statusesOf({ token, sentAt, receivedAt }: Observation): Status[] {
    const changes = this.#changes.get(token) ?? [];
    const states: Change[] = [{ status: 404, begunAt: -Infinity, doneAt: -Infinity }, ...changes];
    return states.filter(({ begunAt }, index) => {
      const replacedAt = states[index + 1]?.doneAt ?? Infinity;
      return begunAt <= receivedAt + TICK && replacedAt + this.#bound >= sentAt - TICK;
    }).map(({ status }) => status);
  }

  /**
   * Returns what is wrong with a response, if anything. Responses of one server must be passed in
   * the order received.
   */
  faultOf(observation: Observation): string | undefined {
    const { server, method, token, status, sentAt, receivedAt } = observation;
    const said = `${method} ${token} of ${server}, sent at ${sentAt}, returned ${status}`;
    const expected = this.statusesOf(observation);
    if (!expected.includes(status as Status)) {
      const changes = JSON.stringify(this.#changes.get(token));
      return `${said} instead of ${expected.join(" or ")}: ${changes}`;
    }
    const key = `${server} ${token}`;
    const state = STATES.indexOf(status);
    const shown = this.#shown.get(key);
    if (shown === undefined || state > shown.state) {
      this.#shown.set(key, { state, at: receivedAt });
      return undefined;
    }
    const isBack = state < shown.state && sentAt > shown.at + TICK;
    return isBack ? `${said} after ${STATES[shown.state]} at ${shown.at}` : undefined;
  }
}
