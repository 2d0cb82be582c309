/** A server on a real store that never answers about one object. */

import { assert, assertEquals } from "@std/assert";
import { sqliteAt } from "../../../../lib/database/place.ts";
import { openEngine } from "../../../../lib/storage/engines/sqlite.ts";
import type { PublishedItem } from "../../../../lib/storage/item.ts";
import { newMetadata } from "../../storage_suite.ts";
import { newPrefix, openBucket } from "../../../support/bucket_storage.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { Relay } from "../../../support/relay.ts";
import { S3_STORE, S3Store } from "../../../support/s3_store.ts";
import { ServerProcess } from "../../../support/server.ts";

const store = shared(S3_STORE, () => S3Store.start());

/** The number of periods of five seconds that the clients ask for. */
const PERIODS = 3;

/**
 * Milliseconds until a response about a sound object: at most 200 on an idle machine, and 4,500 if
 * it waits for the other one.
 */
const ANSWERED = 3_000;

needing(...S3_STORE)(
  "an object that hangs takes no other with it, with one client and with twenty",
  () =>
    inFolder(async (folder) => {
      const prefix = newPrefix();
      const engine = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
      await using subject = await openBucket(store(), engine, prefix);
      const publish = (length: number) => subject.publish(newMetadata(), new Uint8Array(length));
      const hanging = await publish(1_000);
      const sound: PublishedItem[] = [];
      for (let length = 1; length <= 5; length++) sound.push(await publish(length));

      await using relay = new Relay(store().port);
      const end = Promise.withResolvers<void>();
      const paths: string[] = [];
      relay.onSent = (text) => {
        const [, path] = /^GET (\S+)/.exec(text) ?? [];
        if (path !== undefined) paths.push(path);
        return path?.endsWith(hanging.digest) ? end.promise : undefined;
      };
      const server = await ServerProcess.start({
        ...store().environment(prefix),
        AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${relay.port}`,
      }, folder);
      const send = async (method: string, { token }: PublishedItem) => {
        const since = performance.now();
        const { status } = await requestRaw(server.port, method, `/media/${token}`);
        return { status, took: performance.now() - since };
      };
      for (const clients of [1, 20]) {
        const over = performance.now() + PERIODS * 5_000;
        const slowest: number[] = [];
        const loop = async (item: PublishedItem, pause: number) => {
          for (let round = 0; performance.now() < over; round++) {
            const { status, took } = await send(round % 2 === 0 ? "HEAD" : "GET", item);
            assertEquals(status, item === hanging ? 503 : 200, `after ${took} ms`);
            if (item !== hanging) slowest.push(took);
            await new Promise((resolve) => setTimeout(resolve, pause));
          }
        };
        await Promise.all([
          ...Array.from({ length: clients }, () => loop(hanging, 10)),
          ...sound.map((item) => loop(item, 100)),
        ]);
        const slow = Math.max(...slowest);
        assert(slow < ANSWERED, `${slow} ms with ${clients} clients`);
      }
      end.resolve();
      await server.stop();
    }),
);
