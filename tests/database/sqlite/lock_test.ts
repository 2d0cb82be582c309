import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../../lib/storage/token.ts";
import { HEARTBEAT_INTERVAL_MS } from "../../../lib/usage/record/heartbeat_schedule.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { callsIn, openLocal } from "../../support/local_storage.ts";
import { media } from "../../support/media_cli.ts";
import { SAMPLE_MP3 } from "../../support/paths.ts";
import { needing } from "../../support/permissions.ts";
import { field, requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";

const test = needing("processes");

/** Milliseconds for which the lock is held: of the ledger's, until heartbeats have met it. */
const HELD = { catalogue: 3_000, ledger: HEARTBEAT_INTERVAL_MS + 2_000 };

/** Milliseconds within which requests are answered meanwhile, since who waits, waits for 30,000. */
const BOUND = 10_000;

/** Files that are locked, from when on, and whether SQLite admits readers meanwhile. */
const CASES = [
  ["catalogue", "WAL", "after its start", true],
  ["catalogue", "DELETE", "after its start", false],
  ["ledger", "WAL", "after its start", true],
  ["ledger", "WAL", "before its start", true],
] as const;

for (const [file, journalMode, since, admitsReaders] of CASES) {
  test(`a server never waits for the ${file}'s lock: ${journalMode}, ${since}`, async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
    const video = await subject.publish(newMetadata("video"), new Uint8Array(1_000));
    await subject.close(); // no process has it open
    const path = `${subject.folder}/catalogue.sqlite${file === "ledger" ? "-ledger" : ""}`;
    using holder = new DatabaseSync(path, { timeout: 10_000 });
    holder.exec(`PRAGMA journal_mode = ${journalMode}; BEGIN; SELECT * FROM sqlite_master`);
    if (since === "before its start") holder.exec("COMMIT; BEGIN EXCLUSIVE");
    await using server = await ServerProcess.start({}, subject.folder); // cannot change the mode
    let calls = 0;

    if (since === "after its start") holder.exec("COMMIT; BEGIN EXCLUSIVE");
    const publishing = file === "catalogue"
      ? media(subject.folder, ["publish", SAMPLE_MP3, "--json"])
      : undefined;
    const started = performance.now();
    let longest = 0;
    while (performance.now() - started < HELD[file]) {
      for (
        const [method, target, status] of [
          ["HEAD", `/audio/${token}`, 200],
          ["HEAD", `/audio/${newToken()}`, 404], // which no cache knows
          ["GET", `/audio/${newToken()}`, 404],
          ["HEAD", `/video/${video.token}`, 200],
          ["GET", "/healthz", 200],
        ] as const
      ) {
        const sent = performance.now();
        const response = await requestRaw(server.port, method, target);
        longest = Math.max(longest, performance.now() - sent);
        const expected = admitsReaders ? status : 503;
        assertEquals(response.status, expected, `${method} ${target}`);
        assertEquals(/^\d+$/.test(field(response, "retry-after") ?? ""), expected === 503);
        if (target !== "/healthz") calls++;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert(longest < BOUND, `a request was answered after ${longest} ms`);

    holder.exec("COMMIT");
    if (publishing !== undefined) {
      const { code, stdout, stderr } = await publishing;
      assertEquals(code, 0);
      assertMatch(stderr, /^(media: waiting for the catalogue .*\n)?$/);
      const target = `/audio/${JSON.parse(stdout).token}`;
      assertEquals((await requestRaw(server.port, "HEAD", target)).status, 200);
      calls++;
    }
    assertEquals((await requestRaw(server.port, "GET", "/healthz")).status, 200);
    const { code, log } = await server.stop();
    assertEquals(code, 0);
    const isLogged = log.some(({ event, cause }) =>
      event === "error" && String(cause).includes(file)
    );
    assertEquals(isLogged, !admitsReaders || file === "ledger", "whether the fault was logged");
    assertEquals(await callsIn(subject.folder), calls, "every call is in the ledger");
  });
}
