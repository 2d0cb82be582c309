/**
 * HEAD and GET of two servers while objects and the store fail at random, on a clock that jumps; and
 * how often they ask the store.
 */

import { assert, assertEquals } from "@std/assert";
import { sqliteAt } from "../../../../lib/database/place.ts";
import { BucketContent } from "../../../../lib/storage/content/bucket/content.ts";
import { storageOn } from "../../../../lib/storage/engines/open_storage.ts";
import { openEngine } from "../../../../lib/storage/engines/sqlite.ts";
import { PERIOD_MS } from "../../../../lib/storage/generations.ts";
import type { PublishedItem } from "../../../../lib/storage/item.ts";
import { newToken } from "../../../../lib/storage/token.ts";
import { newMetadata } from "../../storage_suite.ts";
import { openScripted, serverOn } from "../../../support/bucket_server.ts";
import { newPrefix, openBucket, settingsOf } from "../../../support/bucket_storage.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { freePort } from "../../../support/ports.ts";
import { randomFrom } from "../../../support/random.ts";
import { Relay } from "../../../support/relay.ts";
import { S3_STORE, S3Store } from "../../../support/s3_store.ts";
import { refusal, response, ScriptedStore } from "../../../support/scripted_store.ts";
import { FEWEST_SEEDS } from "../../../support/seeds.ts";

const START = Date.parse("2027-01-01");
const MINUTE = 60_000;

const store = shared(S3_STORE, () => S3Store.start());

/** An item, and what is true of it since when. */
interface Truth {
  readonly item: PublishedItem;
  readonly content: Uint8Array;
  status: 200 | 410 | 502 | 503;
  changedAt: number;
  /** The servers at which a GET has failed since. */
  readonly foundBy: Set<unknown>;
}

const STEPS = 150;

/** What all seeds together have seen. */
const seen = new Set<string>();

for (const seed of FEWEST_SEEDS) {
  needing(...S3_STORE)(
    `two servers on a bucket say on HEAD what they say on GET, and the truth in time (seed ${seed})`,
    () =>
      inFolder(async (folder) => {
        const prefix = newPrefix();
        const open = () => openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
        await using relay = new Relay(store().port);
        const closed = freePort();
        await using subject = await openBucket(store(), await open(), prefix, relay.port);
        const content = new BucketContent(settingsOf(store(), prefix, relay.port));
        const { media: second, close } = storageOn(await open(), content);
        const clock = { now: START };
        const servers = [serverOn(subject.storage, clock), serverOn(second, clock)];
        const random = randomFrom(seed);
        const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
        const make = async (): Promise<Truth> => {
          // The first of these lengths is of responses that are prepared, also those to GET.
          const content = crypto.getRandomValues(new Uint8Array(pick([40, 20_000])));
          const item = await subject.publish(newMetadata(), content);
          return { item, content, status: 200, changedAt: clock.now, foundBy: new Set() };
        };
        const truths = [await make(), await make(), await make(), await make()];
        let [isDown, storeChangedAt, publishedAt] = [false, -Infinity, clock.now];

        const change = async (truth: Truth) => {
          const { item, content, status } = truth;
          truth.changedAt = clock.now;
          truth.foundBy.clear();
          if (status === 410) {
            truths[truths.indexOf(truth)] = await make();
          } else if (status === 200) {
            truth.status = pick([410, 502, 502, 503, 503]);
            if (truth.status === 410) await subject.unpublish(item.token, clock.now);
            else await subject.damage(item, truth.status === 502 ? content.subarray(1) : undefined);
          } else {
            await subject.damage(item, content);
            truth.status = 200;
          }
          if (truth.status === 410 || status === 410) publishedAt = clock.now;
        };
        for (let step = 0; step < STEPS; step++) {
          if (random() < 0.02) {
            relay.lead(isDown ? store().port : closed);
            [isDown, storeChangedAt] = [!isDown, clock.now];
          }
          if (!isDown && random() < 0.1) await change(pick(truths));
          clock.now += pick([
            0,
            0,
            0,
            0,
            0,
            1,
            1,
            1,
            20,
            20,
            100,
            100,
            1_000,
            1_000,
            PERIOD_MS,
            20_000,
          ]);
          const truth = pick(truths);
          const server = pick(servers);
          const methods = pick([["GET", "HEAD"], ["HEAD"]] as const);
          const said = [];
          for (const method of methods) {
            const from = server.cached.generations.generation;
            const { status, answer } = await server.send(method, truth.item);
            said.push({ status, answer, from, to: server.cached.generations.generation });
            seen.add(`${method} ${status}`);
          }
          const what = `step ${step}: ${methods} ${JSON.stringify(truth.item)}`;
          const [first, last = first] = said;
          // What is found out meanwhile shows in both methods from then on.
          const isSame = (first?.to === last?.from && first?.from === first?.to) ||
            Number(first?.status) >= 502;
          if (isSame) assertEquals(last?.answer, first?.answer, what);

          const settled = (since: number, bound: number) => clock.now - since >= bound;
          if (!settled(storeChangedAt, PERIOD_MS) || !settled(publishedAt, 100)) continue;
          // An outage shows within a period on both methods, and no item needs a GET for that.
          const expected = isDown && truth.status !== 410 ? 503 : truth.status;
          // A lost object shows within a minute, or on a GET, and on HEAD from then on; what is back
          // shows within a period.
          const isLost = truth.status === 502 || truth.status === 503;
          if (isLost && !isDown && first?.status === truth.status) truth.foundBy.add(server);
          const isFound = methods.length === 2 || truth.foundBy.has(server);
          const bound = isLost && !isFound ? MINUTE : PERIOD_MS;
          if (isDown || settled(truth.changedAt, bound)) {
            assertEquals(last?.status, expected, what);
          }
        }
        await close();
      }),
  );
}

needing(...S3_STORE)("those two servers gave each status on both methods", () => {
  for (const method of ["GET", "HEAD"]) {
    for (const status of [200, 410, 502, 503]) assert(seen.has(`${method} ${status}`));
  }
});

needing("processes")(
  "two hundred hot items cost at most four requests a second at the store, while others are published",
  async () => {
    await using fake = new ScriptedStore();
    fake.script = () => response(200, { "Content-Length": "7" });
    const { storage, items, close } = await openScripted(
      fake,
      Array(200).fill({ length: 7 }),
      { timeoutMs: 60_000 }, // on a busy machine, two hundred answers take seconds
    );
    const clock = { now: START };
    const { send } = serverOn(storage, clock);
    const askAll = async () => {
      const answers = await Promise.all(items.map((item) => send("HEAD", item)));
      assert(answers.every(({ status }) => status === 200));
    };
    await askAll();
    assertEquals(fake.heads.length, items.length);
    const [SECONDS, PAUSE] = [120, 2.5];
    for (let second = 0; second < SECONDS; second += PAUSE) {
      clock.now += PAUSE * 1_000;
      const linked = { ...newMetadata(), location: "https://cdn.example/a" };
      await storage.catalogue.add({ ...linked, token: newToken() });
      await askAll();
    }
    const asked = fake.heads.length - items.length;
    assert(asked <= 4 * SECONDS, `asked ${asked} times in ${SECONDS} s`);
    assert(asked >= 2 * items.length, `each item is asked about every minute, not ${asked} in all`);
    await close();
  },
);

needing("processes")(
  "a store that fails is asked at most ten times a second, whoever asks for what",
  async () => {
    const silence = new Promise<string>(() => {});
    const failures = [
      { what: "silent", script: () => silence },
      { what: "failing", script: () => refusal(503, "SlowDown") },
      { what: "refusing", script: () => refusal(403, "AccessDenied") },
    ];
    for (const { what, script } of failures) {
      await using fake = new ScriptedStore();
      fake.script = script;
      const objects = Array(300).fill({ length: 7 }); // more than there are connections
      const { storage, items, close } = await openScripted(fake, objects, { timeoutMs: 1_000 });
      const { send } = serverOn(storage, { now: START });
      for (const round of ["first", "second"]) {
        const [before, since] = [fake.heads.length, performance.now()];
        const answers = await Promise.all(items.map((item) => send("HEAD", item)));
        assert(answers.every(({ status }) => status === 503), what);
        const seconds = (performance.now() - since) / 1_000;
        const asked = fake.heads.length - before;
        const atOnce = 16; // four questions until the first has failed, of four requests each
        assert(asked <= atOnce + 10 * seconds, `${what}, ${round}: ${asked} in ${seconds} s`);
      }
      await close();
    }
  },
);
