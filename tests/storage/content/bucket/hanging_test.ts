/** A server on a real store that never answers about one object. */

import { assert, assertEquals } from "@std/assert";
import { sqliteAt } from "../../../../lib/database/place.ts";
import { openEngine } from "../../../../lib/storage/engines/sqlite.ts";
import type { PublishedItem } from "../../../../lib/storage/item.ts";
import { newMetadata } from "../../storage_suite.ts";
import { newPrefix, openBucket } from "../../../support/bucket_storage.ts";
import { testsInFolder } from "../../../support/media_cli.ts";
import { shared } from "../../../support/permissions.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { Relay } from "../../../support/relay.ts";
import { S3_STORE, S3Store } from "../../../support/s3_store.ts";
import { ServerProcess } from "../../../support/server.ts";
import { until } from "../../../support/within.ts";

const store = shared(S3_STORE, () => S3Store.start());

testsInFolder(...S3_STORE)(
  "an object that hangs takes no other with it, though twenty clients ask for it",
  async (folder) => {
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
    await using server = await ServerProcess.start({
      ...store().environment(prefix),
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${relay.port}`,
    }, folder);
    using stack = new DisposableStack();
    stack.defer(() => end.resolve());
    const ask = async (method: string, { token }: PublishedItem) =>
      (await requestRaw(server.port, method, `/media/${token}`)).status;
    // Whether it hangs is found out by time, and is known for the next five seconds.
    let isAnswered = false;
    const all = Array.from(
      { length: 20 },
      (_, index) => ask(index % 2 === 0 ? "HEAD" : "GET", hanging),
    );
    const answered = Promise.all(all).finally(() => isAnswered = true);
    const isHanging = () => paths.some((path) => path.endsWith(hanging.digest));
    await until("a request for the object that hangs", isHanging);
    for (const method of ["HEAD", "GET", "HEAD"]) {
      const statuses = await Promise.all(sound.map((item) => ask(method, item)));
      assertEquals(statuses, sound.map(() => 200));
    }
    assert(!isAnswered, "nobody waits for the one that hangs");
    assertEquals(new Set(await answered), new Set([503]));
    for (const method of ["HEAD", "GET"]) {
      const statuses = [hanging, ...sound].map((item) => ask(method, item));
      assertEquals(await Promise.all(statuses), [503, ...sound.map(() => 200)]);
    }
  },
);
