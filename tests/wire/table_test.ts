/** The whole request table on the wire, for each content store and each engine. */

import { assertMatch } from "@std/assert";
import {
  DEPRECATED_AT,
  publishTableItems,
  requestTable,
  runRow,
  type Send,
} from "../server/request_table.ts";
import { newPrefix, openBucket } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder } from "../support/media_cli.ts";
import type { MediaSubject } from "../support/media_subject.ts";
import { needing, shared } from "../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../support/pgbouncer.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { PostgresServer } from "../support/postgres.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";

const store = shared(S3_STORE, () => S3Store.start());
const postgres = shared(PGBOUNCER, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => startPgBouncer(postgres()));

/** Sends every row to a server on this storage until its responses are prepared. */
async function runTable(
  t: Deno.TestContext,
  subject: MediaSubject,
  folder: string,
  environment: Record<string, string> = {},
): Promise<void> {
  const rows = requestTable(await publishTableItems(subject));
  await using server = await ServerProcess.start({ DEPRECATED_AT, ...environment }, folder);
  const send: Send = async (method, target, fields) => {
    const seen = await requestRaw(server.port, method, target, fields);
    assertMatch(field(seen, "date") ?? "", /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
    return seen;
  };
  for (const time of ["first", "second", "prepared"]) {
    for (const row of rows) await t.step(`${row.what}, ${time}`, () => runRow(row, send));
  }
}

needing("processes")("a server with content in a folder answers the whole table", async (t) => {
  await using subject = await openLocal();
  await runTable(t, subject, subject.folder);
});

needing(...PGBOUNCER, ...S3_STORE)(
  "a server on PostgreSQL behind a pooler, with content in a bucket, answers the whole table",
  (t) =>
    inFolder(async (folder) => {
      const prefix = newPrefix();
      const DATABASE_URL = postgres().urlOf(await postgres().createDatabase(), bouncer().port);
      await using subject = await openBucket(store(), await openEngine(DATABASE_URL), prefix);
      await runTable(t, subject, folder, { DATABASE_URL, ...store().environment(prefix) });
    }),
);
