import { assertEquals } from "@std/assert";
import { newPrefix } from "../../../support/bucket_storage.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { fromRoot } from "../../../support/paths.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../../support/postgres.ts";
import { S3_STORE, S3Store } from "../../../support/s3_store.ts";

const store = shared(S3_STORE, () => S3Store.start());
const postgres = shared(POSTGRES, () => PostgresServer.start());

const RUN = ["run", "--frozen", "--no-prompt", "--allow-all"];

/** ROUNDS=1000 makes it a long run. */
const rounds = () => Deno.env.get("ROUNDS") ?? "40";

/** Has two processes publish and unpublish the same content at the same time. */
async function race(databaseUrl: string): Promise<void> {
  const prefix = newPrefix();
  const processes = [1, 2].map(() =>
    new Deno.Command(Deno.execPath(), {
      args: [...RUN, fromRoot("tests/support/racer.ts"), rounds()],
      env: { ...store().environment(prefix), DATABASE_URL: databaseUrl, NO_COLOR: "1" },
    }).output()
  );
  for (const { stderr, code } of await Promise.all(processes)) {
    assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
  }
  assertEquals(await store().keys(prefix), [`${prefix}/media-head`]); // nothing is left
}

needing(...S3_STORE)(
  "two processes on SQLite publish and unpublish the same content, and no item lacks it",
  () => inFolder((folder) => race(`sqlite:${folder}/catalogue.sqlite`)),
);

needing(...S3_STORE, ...POSTGRES)(
  "two processes on PostgreSQL publish and unpublish the same content, and no item lacks it",
  async () => race(postgres().urlOf(await postgres().createDatabase())),
);
