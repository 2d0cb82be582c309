import { assert, assertEquals } from "@std/assert";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { type LookupResult, UnpublishedError } from "../../lib/storage/storage.ts";
import { createHandler } from "../../main.ts";
import { OneItem } from "../support/one_item.ts";
import { CONFIG } from "./request_table.ts";

/** Waits of storage and of the test that are not over. */
let waits = 0;

/** Waits for a few turns of others: now none, now some. */
async function aWhile(): Promise<void> {
  waits++;
  for (let turns = Math.floor(Math.random() * 4); turns > 0; turns--) {
    await new Promise((resolve) => setTimeout(resolve));
  }
  waits--;
}

/** Storage that takes its time for everything, and sees each change at some time in between. */
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

Deno.test("no HEAD says 200 after a GET said 410, whatever is in flight", async () => {
  for (let round = 0; round < 60; round++) {
    const item = new SlowItem();
    const storage = new CachedStorage(item, 3_600_000);
    const handle = createHandler({ storage, config: CONFIG, now: Date.now, log() {} });
    let [isGone, isOver, heads] = [false, false, 0];
    const ask = async (method: string) => {
      while (!isOver) {
        const wasGone = isGone;
        const url = `http://test/media/${item.item.token}`;
        const { status } = await handle(new Request(url, { method }));
        assert(status === 200 || status === 410, `${method} said ${status}`);
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
    // No request waits for a look at the version that is begun before it is due.
    while (waits > 0) await new Promise((resolve) => setTimeout(resolve));
  }
});
