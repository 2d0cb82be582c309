/** What one process publishes or unpublishes shows in the HEAD and GET of every server. */

import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async/delay";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { media } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../support/pgbouncer.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const postgres = shared(PGBOUNCER, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => startPgBouncer(postgres()));

/** The true state of an item, as a status. */
type Status = 404 | 200 | 410;

/** A response of a server. */
interface Observation {
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
class Truth {
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

  /** Returns the allowed statuses of a response: more than one, if the item changed at that time. */
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

/** Milliseconds between requests of one loop. */
const PACE = 10;

/** Requests an item from servers repeatedly. */
class Callers {
  readonly observations: Observation[] = [];
  #isStopped = false;
  readonly #loops: Promise<void>[];

  /** @param heads Concurrent loops of HEADs to each server; one more sends GETs. */
  constructor(servers: readonly ServerProcess[], token: () => Token, heads: number) {
    this.#loops = servers.flatMap((server) => [
      this.#ask(server, "GET", token),
      ...Array.from({ length: heads }, () => this.#ask(server, "HEAD", token)),
    ]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  async #ask({ origin }: ServerProcess, method: "HEAD" | "GET", token: () => Token): Promise<void> {
    while (!this.#isStopped) {
      const [asked, sentAt] = [token(), Date.now()];
      const response = await fetch(`${origin}/media/${asked}`, { method });
      const receivedAt = Date.now();
      await response.body?.cancel();
      const { status } = response;
      this.observations.push({ server: origin, method, token: asked, status, sentAt, receivedAt });
      await delay(PACE);
    }
  }
}

interface Case {
  readonly what: string;
  /** Milliseconds within which every server must show a change. */
  readonly bound: number;
  /** Concurrent loops of HEADs to each server. */
  readonly heads: number;
  /** Items that are published and unpublished in turn. */
  readonly rounds: number;
  /**
   * Returns the databases' URLs of the first server, which is that of commands, and of the second;
   * without it, a process that stays unpublishes.
   */
  readonly databases?: () => Promise<[string, string]>;
}

const CASES: Case[] = [
  { what: "on SQLite, by a process", bound: 100, heads: 8, rounds: 6 },
  {
    what: "on PostgreSQL, by commands, with a server behind a pooler",
    bound: 2_500, // the aim is 1,000; the rest is for a busy machine
    heads: 1,
    rounds: 1,
    async databases() {
      const database = await postgres().createDatabase();
      return [postgres().urlOf(database), postgres().urlOf(database, bouncer().port)];
    },
  },
];

for (const { what, bound, heads, rounds, databases } of CASES) {
  needing("processes", ...(databases ? PGBOUNCER : []))(
    `a change shows in all servers at once, ${what}`,
    async () => {
      const urls = await databases?.();
      await using subject = await openLocal(urls && openEngine(urls[0]));
      const { folder, storage } = subject;
      const start = (environment = {}) => ServerProcess.start(environment, folder);
      const [first, second] = urls?.map((url) => ({ DATABASE_URL: url })) ?? [];
      await using one = await start(first);
      await using other = await start(second);
      const truth = new Truth(bound);
      const during = async (token: Token, status: Status, change: () => Promise<unknown>) => {
        truth.begin(token, status, Date.now());
        await change();
        truth.end(token, Date.now());
        await delay(1.5 * bound);
      };

      let { token } = newMetadata();
      const callers = new Callers([one, other], () => token, heads);
      for (let round = 0; round < rounds; round++) {
        const content = crypto.getRandomValues(new Uint8Array(100));
        await delay(bound * (1 + Math.random()));
        await during(token, 200, () => subject.publish({ ...newMetadata(), token }, content));
        await during(token, 410, async () => {
          if (databases === undefined) await storage.unpublish(token, Date.now());
          else assertEquals((await media(folder, ["unpublish", token], first)).code, 0);
        });
        token = newMetadata().token;
      }
      await callers.stop();

      const inOrder = callers.observations.toSorted((a, b) => a.receivedAt - b.receivedAt);
      const faults = inOrder.map((answer) => truth.faultOf(answer));
      assertEquals(faults.filter((fault) => fault !== undefined), []);
      const kinds = inOrder.map(({ server, method, status }) => server + method + status);
      assertEquals(new Set(kinds).size, 12, "each server gave each status to both methods");
      const isCertain = (answer: Observation) => truth.statusesOf(answer).length === 1;
      assert(inOrder.filter(isCertain).length > 10 * rounds);
    },
  );
}

needing("processes")(
  "lost content shows in GET at once, or within five seconds if it is short",
  async () => {
    await using subject = await openLocal();
    const [short, long] = [
      await subject.publish(newMetadata(), new Uint8Array(16_384)),
      await subject.publish(newMetadata(), new Uint8Array(16_385)),
    ];
    await using server = await ServerProcess.start({}, subject.folder);
    const get = async ({ token }: { token: Token }) =>
      (await requestRaw(server.port, "GET", `/media/${token}`)).status;
    for (const item of [long, long, short, short]) assertEquals(await get(item), 200);
    await subject.damage(long, undefined);
    assertEquals(await get(long), 503);
    for (const item of [short, short]) assertEquals(await get(item), 200);
    await subject.damage(short, undefined);
    await until("the loss in a GET", async () => await get(short) === 503, 10_000);
  },
);
