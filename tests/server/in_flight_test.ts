import { assert, assertEquals } from "@std/assert";
import { CachedStorage } from "../../lib/storage/cache.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import { UnpublishedError } from "../../lib/storage/errors.ts";
import { servedHandler } from "../support/handlers.ts";
import { OneItem } from "../support/one_item.ts";
import { CONFIG } from "./request_table.ts";

/** The number of pending waits. */
let waits = 0;

/** Waits for a random, small number of event-loop turns. */
async function aWhile(): Promise<void> {
  waits++;
  for (let turns = Math.floor(Math.random() * 4); turns > 0; turns--) {
    await new Promise((resolve) => setTimeout(resolve));
  }
  waits--;
}

/** Storage that delays every operation, and sees each change at a random point within it. */
class SlowItem extends OneItem {
  override readonly versionTtl = 20;
  isContentGone = false;

  constructor() {
    super({
      find: async (): Promise<LookupResult> => {
        await aWhile();
        const { result } = this;
        await aWhile();
        return result;
      },
      open: async () => {
        await aWhile();
        if (this.isContentGone) throw new UnpublishedError("It is gone");
        return new ReadableStream({ start: (controller) => controller.close() });
      },
    });
  }

  override async version(): Promise<number> {
    await aWhile();
    const { currentVersion } = this;
    await aWhile();
    return currentVersion;
  }

  unpublish(): void {
    this.result = { state: "unpublished", kind: "audio", unpublishedAt: 0 };
    this.currentVersion++;
  }
}

Deno.test("no HEAD answers 200 after a GET answered 410, whatever is in flight", async () => {
  for (let round = 0; round < 60; round++) {
    const item = new SlowItem();
    const storage = new CachedStorage(item, 3_600_000);
    const handle = servedHandler({ storage, config: CONFIG, clock: Date.now, log() {} });
    let [isGone, isOver, heads] = [false, false, 0];
    const ask = async (method: string) => {
      while (!isOver) {
        const wasGone = isGone;
        const url = `http://test/media/${item.item.token}`;
        const { status } = await handle(new Request(url, { method }));
        assert(status === 200 || status === 410, `${method} answered ${status}`);
        if (method === "GET" && status === 410) isGone = true;
        if (method === "HEAD" && wasGone) heads++;
        if (method === "HEAD" && wasGone) assertEquals(status, 410, `round ${round}`);
        await aWhile();
      }
    };
    const loops = Promise.all(
      ["GET", "GET", ..."12345678"].map((name) => ask(name === "GET" ? "GET" : "HEAD")),
    );
    await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 20));
    item.unpublish();
    setTimeout(() => item.isContentGone = true, 40 * Math.random());
    const stop = async () => {
      while (heads < 50 || !item.isContentGone) await aWhile();
      isOver = true;
    };
    await Promise.race([loops, stop()]);
    isOver = true;
    await loops;
    // Version checks that are started early may outlast the requests.
    while (waits > 0) await new Promise((resolve) => setTimeout(resolve));
  }
});
