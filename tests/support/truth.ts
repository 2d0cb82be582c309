/**
 * What is true of items at which time, and which answers may say so. Every instant is in milliseconds
 * since the epoch, by the clock that all processes of a machine share.
 */

import type { Token } from "../../lib/storage/token.ts";

/** What is true of an item, as the status that says so. */
export type Status = 404 | 200 | 410;

/** An answer of a server. */
export interface Observation {
  /** One process. */
  readonly server: string;
  readonly method: "HEAD" | "GET";
  readonly token: Token;
  readonly status: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A change of an item: some time from when it began until it was reported as done. */
interface Change {
  readonly status: Status;
  readonly begunAt: number;
  doneAt: number;
}

/** By how much two reads of the clock may be in disorder. */
const TICK = 2;

/** Holds answers against what is true. */
export class Truth {
  readonly #bound: number;
  readonly #changes = new Map<Token, Change[]>();
  /** When a GET first said 410, by server and token. */
  readonly #goneAt = new Map<string, number>();

  /** @param bound Milliseconds within which a change shows. */
  constructor(bound: number) {
    this.#bound = bound;
  }

  /** A change is about to be made. Until it is done, both what was and what will be are true. */
  begin(token: Token, status: Status, begunAt: number): void {
    const changes = this.#changes.get(token) ?? [];
    changes.push({ status, begunAt, doneAt: Infinity });
    this.#changes.set(token, changes);
  }

  /** The change that was begun last is done. */
  end(token: Token, doneAt: number): void {
    const change = this.#changes.get(token)?.at(-1);
    if (change !== undefined) change.doneAt = doneAt;
  }

  /** The statuses that an answer may have: more than one, where something changed at that time. */
  statusesOf({ token, sentAt, receivedAt }: Observation): Status[] {
    const changes = this.#changes.get(token) ?? [];
    const states: Change[] = [{ status: 404, begunAt: -Infinity, doneAt: -Infinity }, ...changes];
    return states.filter(({ begunAt }, index) => {
      const replacedAt = states[index + 1]?.doneAt ?? Infinity;
      return begunAt <= receivedAt + TICK && replacedAt + this.#bound >= sentAt - TICK;
    }).map(({ status }) => status);
  }

  /** Milliseconds for which what an answer says was out of date when it was asked for; 0 for not. */
  lateness({ token, status, sentAt }: Observation): number {
    const changes = this.#changes.get(token) ?? [];
    const next = changes[changes.findIndex((change) => change.status === status) + 1];
    return Math.max(0, sentAt - (next?.doneAt ?? Infinity));
  }

  /**
   * What is wrong with an answer, if anything. Answers of one server are given in the order in which
   * they were received.
   */
  faultOf(observation: Observation): string | undefined {
    const { server, method, token, status, sentAt, receivedAt } = observation;
    const said = `${method} ${token} of ${server}, sent at ${sentAt}, said ${status}`;
    const expected = this.statusesOf(observation);
    if (!expected.includes(status as Status)) {
      const changes = JSON.stringify(this.#changes.get(token));
      return `${said} instead of ${expected.join(" or ")}: ${changes}`;
    }
    const key = `${server} ${token}`;
    const goneAt = this.#goneAt.get(key) ?? Infinity;
    if (method === "GET" && status === 410) this.#goneAt.set(key, Math.min(goneAt, receivedAt));
    const isBack = method === "HEAD" && status === 200 && sentAt > goneAt + TICK;
    return isBack ? `${said} after a GET said 410 at ${goneAt}` : undefined;
  }
}
