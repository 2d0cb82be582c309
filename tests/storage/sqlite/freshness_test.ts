import { assert, assertEquals } from "@std/assert";
import type { Token } from "../../../lib/storage/token.ts";
import { openLocal } from "../../support/local_storage.ts";
import { media } from "../../support/media_cli.ts";
import { needing } from "../../support/permissions.ts";
import { ServerProcess } from "../../support/server.ts";
import { type Observation, type Status, Truth } from "../../support/truth.ts";
import { newMetadata } from "../storage_suite.ts";

const test = needing("processes");

/** Milliseconds within which every server must show a change. */
const BOUND = 100;

const ROUNDS = 20;

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
    }
  }
}

/** How an item is changed, and the number of concurrent requests. */
const CASES = [
  { ttl: "5", heads: 1, rounds: ROUNDS, isCommand: false },
  { ttl: "3600", heads: 1, rounds: ROUNDS, isCommand: false },
  { ttl: "3600", heads: 16, rounds: 3, isCommand: true },
];

for (const { ttl, heads, rounds, isCommand } of CASES) {
  const how = `CACHE_TTL=${ttl}, ${heads} HEADs at a time, ${isCommand ? "commands" : "a process"}`;
  test(`what one process publishes or unpublishes shows in all servers at once: ${how}`, async () => {
    await using subject = await openLocal();
    const { folder, storage } = subject;
    const start = () => ServerProcess.start({ CACHE_TTL: ttl }, folder);
    await using one = await start();
    await using other = await start();
    const truth = new Truth(BOUND);
    const during = async (token: Token, status: Status, change: () => Promise<void>) => {
      truth.begin(token, status, Date.now());
      await change();
      truth.end(token, Date.now());
      await new Promise((resolve) => setTimeout(resolve, 2 * BOUND));
    };

    let token = newMetadata().token;
    const callers = new Callers([one, other], () => token, heads);
    for (let round = 0; round < rounds; round++) {
      const next = { ...newMetadata(), token };
      const content = crypto.getRandomValues(new Uint8Array(100));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * BOUND));
      await during(token, 200, async () => void await subject.publish(next, content));
      await during(token, 410, async () => {
        if (!isCommand) return void await storage.unpublish(token, Date.now());
        assertEquals((await media(folder, ["unpublish", token])).code, 0);
      });
      token = newMetadata().token;
    }
    await callers.stop();

    const inOrder = callers.observations.toSorted((a, b) => a.receivedAt - b.receivedAt);
    const faults = inOrder.map((answer) => truth.faultOf(answer));
    assertEquals(faults.filter((fault) => fault !== undefined), []);
    const kinds = callers.observations.map(({ server, method, status }) =>
      server + method + status
    );
    assertEquals(new Set(kinds).size, 12, "each server gave each status to both methods");
    const isCertain = (answer: Observation) => truth.statusesOf(answer).length === 1;
    assert(callers.observations.filter(isCertain).length > 100 * rounds / 10);
  });
}
