/** Several servers on one PostgreSQL. */

import { assert, assertEquals } from "@std/assert";
import { newToken } from "../../../../lib/storage/token.ts";
import { openLocal } from "../../../support/local_storage.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { openEngine } from "../../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../../support/postgres.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { ServerProcess } from "../../../support/server.ts";
import { newMetadata } from "../../storage_suite.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

test("a server process under load opens two connections to PostgreSQL at most", async () => {
  const database = await postgres().createDatabase();
  const DATABASE_URL = postgres().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.storage.close();
  await using server = await ServerProcess.start({ DATABASE_URL }, subject.folder);
  const counts: number[] = [];
  const asking = Array.from({ length: 100 }, async (_, index) => {
    while (counts.length < 20) {
      const path = index % 3 === 0 ? "/healthz" : `/audio/${index % 3 === 1 ? token : newToken()}`;
      const { status } = await requestRaw(server.port, "HEAD", path);
      assertEquals(status, index % 3 === 2 ? 404 : 200);
    }
  });
  const count = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`;
  while (counts.length < 20) counts.push(Number((await postgres().query(count))[0]));
  await Promise.all(asking);
  assert(counts.every((count) => count <= 2), `${counts}`);
  assert(counts.some((count) => count > 0), `${counts}`);
});
