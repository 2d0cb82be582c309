/** The command `lifecycle usage --copy-from`, for records of applications. */

import { definePolicy } from "@media-head/lifecycle";
import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { openUsage } from "../../../lib/usage/mod.ts";
import { lifecycle } from "../../support/lifecycle_cli.ts";
import { inFolder } from "../../support/media_cli.ts";
import { needing } from "../../support/permissions.ts";

const routes = { "/v1": definePolicy({ deprecatedAt: "2026-01-01" }) };

/** Runs the command. Returns its exit status, and all that it prints. */
async function lifecycleUsage(...words: string[]): Promise<[status: number, text: string]> {
  const { code, stdout, stderr } = await lifecycle("usage", ...words);
  return [code, stdout + stderr];
}

/** Runs an application for a moment. */
async function keepRecord(url: string): Promise<void> {
  const usage = await openUsage(url, { routes, log() {} });
  usage.retire("/v1");
  await usage.close();
}

needing("processes")(
  "lifecycle usage --copy-from adds a record, and says so",
  () =>
    inFolder(async (folder) => {
      const [old, own] = [`sqlite:${folder}/old.sqlite`, `sqlite:${folder}/new.sqlite`];
      const copy = (from: string, ...words: string[]) =>
        lifecycleUsage("--database", own, "--copy-from", from, ...words);
      await keepRecord(own);
      await keepRecord(old);

      const [missing, reason] = await copy(`sqlite:${folder}/mistyped.sqlite`);
      assertEquals(missing, 1);
      assertMatch(
        reason,
        /mistyped\.sqlite" \(--copy-from\) cannot be opened/,
      );
      assertEquals((await copy("mysql://db/x"))[0], 2);

      const [status, text] = await copy(old);
      assertEquals(status, 0, text);
      assertMatch(
        text,
        /^Copied sqlite:\/\S+\/old\.sqlite with 1 session, its last heartbeat at \S+Z; the record starts at \S+Z\n$/,
      );
      const [again, json] = await copy(old, "--json");
      assertEquals([again, JSON.parse(json).copied, JSON.parse(json).sessions], [0, false, 1]);
      assertMatch(
        (await copy(old))[1],
        /^Nothing to do: sqlite:\/\S+ was copied before, its last heartbeat/,
      );
      assertMatch(
        (await copy(own))[1],
        /new\.sqlite is the record in use itself, or one is a copy of the/,
      );
      const [refused, to] = await lifecycleUsage("--database", old, "--copy-from", own);
      assertEquals(refused, 1);
      assertMatch(to, /the record in use was copied into "sqlite:\/\S+new\.sqlite" at/);
    }),
);

needing("processes")(
  "lifecycle usage --copy-from refuses the schema of another release",
  () =>
    inFolder(async (folder) => {
      const [old, own] = [`sqlite:${folder}/old.sqlite`, `sqlite:${folder}/new.sqlite`];
      await keepRecord(own);
      for (
        const [version, remedy] of [[11, "run a later one"], [8, "stop the servers, and move it"]]
      ) {
        await keepRecord(old);
        using database = new DatabaseSync(`${folder}/old.sqlite`);
        database.exec(`PRAGMA user_version = ${version}`);
        const [status, text] = await lifecycleUsage("--database", own, "--copy-from", old);
        assertEquals(status, 1);
        assertMatch(text, new RegExp(`version ${version} of the ledger's schema, .* ${remedy}`));
        database.exec("PRAGMA user_version = 10");
      }
    }),
);
