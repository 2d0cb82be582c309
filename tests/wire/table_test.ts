/**
 * The whole request table on the wire, for every content store.
 */

import { assertMatch } from "@std/assert";
import { openEngine } from "../../lib/storage/sqlite/engine.ts";
import { createHandler } from "../../main.ts";
import {
  CONFIG,
  DEPRECATED_AT,
  publishTableItems,
  requestTable,
  runRow,
} from "../server/request_table.ts";
import { newPrefix, openBucket } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder } from "../support/media_cli.ts";
import type { MediaSubject } from "../support/media_subject.ts";
import { openMemory } from "../support/memory_storage.ts";
import { needing, shared } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";

const store = shared(S3_STORE, () => S3Store.start());

/** Sends every row to a server on this storage. */
async function runTable(
  t: Deno.TestContext,
  subject: MediaSubject,
  start: () => Promise<{ readonly port: number } & AsyncDisposable>,
): Promise<void> {
  const rows = requestTable(await publishTableItems(subject));
  await using server = await start();
  for (const row of rows) {
    await t.step(row.what, () =>
      runRow(row, async (method, target, fields) => {
        const seen = await requestRaw(server.port, method, target, fields);
        assertMatch(field(seen, "date") ?? "", /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
        return seen;
      }));
  }
}

needing("network")("a server with content in memory answers the whole table", async (t) => {
  await using subject = openMemory();
  const { storage } = subject;
  await runTable(t, subject, () => {
    const handle = createHandler({ storage, config: CONFIG, now: Date.now, log() {} });
    const options = { hostname: "127.0.0.1", port: 0, automaticCompression: false, onListen() {} };
    const server = Deno.serve(options, handle);
    const { port } = server.addr;
    return Promise.resolve({ port, [Symbol.asyncDispose]: () => server.shutdown() });
  });
});

needing("processes")("a server with content in a folder answers the whole table", async (t) => {
  await using subject = await openLocal();
  await runTable(t, subject, () => ServerProcess.start({ DEPRECATED_AT }, subject.folder));
});

needing(...S3_STORE)(
  "a server with content in a bucket answers the whole table",
  (t) =>
    inFolder(async (folder) => {
      const prefix = newPrefix();
      const engine = await openEngine(`sqlite:${folder}/catalogue.sqlite`);
      await using subject = openBucket(store(), engine, prefix);
      const environment = { DEPRECATED_AT, ...store().environment(prefix) };
      await runTable(t, subject, () => ServerProcess.start(environment, folder));
    }),
);
