/** A failover that loses what was published last, and what README says of it. */

import { assertEquals, assertMatch } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { inFolder, mediaHere } from "../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";

needing(...POSTGRES, program("pg_basebackup"))(
  "after a failover, verify finds what the lost seconds left, and an import brings it back",
  () =>
    inFolder(async (folder) => {
      await using old = await PostgresServer.start();
      const database = await old.createDatabase();
      const at = (server: PostgresServer) => ({
        DATABASE_URL: server.urlOf(database),
        CONTENT: `${folder}/files`,
        DEPRECATED_AT: "2026-11-21",
      });
      const [kept, lost] = [newToken(), newToken()];
      const list = `${folder}/list.ndjson`;
      const lines = [{ token: kept, path: SAMPLE_MP3 }, { token: lost, path: SAMPLE_MP4 }];
      await Deno.writeTextFile(list, lines.map((line) => JSON.stringify(line)).join("\n"));
      const publish = (token: string, path: string) =>
        mediaHere(folder, ["publish", path, "--token", token], at(old));
      assertEquals((await publish(kept, SAMPLE_MP3)).code, 0);
      await using now = await PostgresServer.copy(old, "restored");
      assertEquals((await publish(lost, SAMPLE_MP4)).code, 0);

      const run = (...args: string[]) => mediaHere(folder, args, at(now));
      assertMatch((await run("show", lost)).stderr, /never published|unknown|no item/i);
      assertMatch((await run("verify")).stdout, /^\+ [\da-f]{64} /);
      const imported = await run("import", list);
      assertMatch(imported.stdout, /^Added: 1; unchanged: 1; refused: 0/);
      assertMatch((await run("verify", "--content")).stdout, /^2 items verified: 2 as published/);
    }),
);
