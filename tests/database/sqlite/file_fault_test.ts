/** What happens to a server whose files are removed or replaced while it runs. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../../lib/storage/token.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { callsIn, openIn, openLocal } from "../../support/local_storage.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../../support/paths.ts";
import { LINUX, needing, program } from "../../support/permissions.ts";
import { field, requestRaw } from "../../support/raw_http.ts";
import { runProgram } from "../../support/run.ts";
import { ServerProcess } from "../../support/server.ts";
import { until } from "../../support/within.ts";

const test = needing("processes");

/** What happens to a file, given a copy of it. */
const CHANGES: [what: string, change: (path: string, copy: string) => Promise<unknown>][] = [
  ["is deleted", (path) => Deno.remove(path)],
  ["is replaced by its copy", (path, copy) => Deno.rename(copy, path)],
  ["is replaced by a folder", async (path) => {
    await Deno.remove(path);
    await Deno.mkdir(path);
  }],
];

/** A copy made by SQLite while the file is in use. */
function copyTo(path: string, copy: string): void {
  using database = new DatabaseSync(path, { timeout: 60_000 });
  database.exec(`VACUUM INTO '${copy}'`);
}

async function statusOf(server: ServerProcess, method: string, target: string): Promise<number> {
  const response = await requestRaw(server.port, method, target);
  assertEquals(/^\d+$/.test(field(response, "retry-after") ?? ""), response.status === 503);
  return response.status;
}

const isSound = (path: string) => {
  using database = new DatabaseSync(path);
  assertEquals({ ...database.prepare("PRAGMA integrity_check").get() }["integrity_check"], "ok");
};

test("a server whose catalogue is removed or replaced answers 503 until it is restarted", async () => {
  for (const [what, change] of CHANGES) {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
    await subject.close();
    const [path, copy] = [`${subject.folder}/catalogue.sqlite`, `${subject.folder}/copy.sqlite`];
    const start = () => ServerProcess.start({}, subject.folder);
    const server = await start();
    const ask = async (status: number) =>
      await statusOf(server, "GET", "/healthz") === status && // which forgets lookups, if it fails
      await statusOf(server, "HEAD", `/media/${token}`) === status &&
      await statusOf(server, "GET", `/media/${token}`) === status;
    assert(await ask(200), what);
    copyTo(path, copy);
    await change(path, copy);
    await until(`503, when it ${what}`, () => ask(503));
    if (what === "is replaced by its copy") { // which others use from now on
      const published = await media(subject.folder, ["publish", SAMPLE_MP3]);
      assertEquals([published.code, published.stderr], [0, ""]);
    }
    assert(await ask(503), "only a start brings it back");
    const { code, log } = await server.stop();
    assertEquals(code, 0);
    const faults = log.filter(({ event }) => event === "error").map(({ cause }) => String(cause));
    assert(faults.length > 0);
    for (const fault of faults) {
      assertMatch(fault, /the catalogue "[^"]*" \(DATABASE_URL\) .* file was removed /);
      assert(!fault.includes(token));
    }
    if (what !== "is replaced by its copy") continue;
    isSound(path);
    await using again = await start();
    assertEquals(await statusOf(again, "HEAD", `/media/${token}`), 200);
    const { media: storage, close } = await openIn(subject.folder);
    assertEquals((await Array.fromAsync(storage.catalogue.list())).length, 2);
    await close();
  }
});

test("a server whose ledger is removed or replaced keeps serving, and says that it cannot count", async () => {
  await Promise.all(CHANGES.map(([what, change]) =>
    inFolder(async (folder) => {
      const [path, copy] = [`${folder}/catalogue.sqlite-ledger`, `${folder}/copy`];
      const server = await ServerProcess.start({}, folder);
      const target = `/audio/${newToken()}`;
      const call = async (times: number) => {
        for (let time = 0; time < times; time++) {
          assertEquals((await requestRaw(server.port, "HEAD", target)).status, 404, what);
        }
      };
      await call(10);
      await until(`counts before it ${what}`, async () => await callsIn(folder) === 10);
      copyTo(path, copy);
      const newcomer = await Deno.readFile(copy);
      await change(path, copy);
      await call(20);
      await until(`a word on /healthz when it ${what}`, async () => {
        const health = await requestRaw(server.port, "GET", "/healthz");
        assertEquals(health.status, 200, "the server stays in rotation");
        const text = new TextDecoder().decode(health.content);
        return text.startsWith("ok, but ");
      });
      const { code, log } = await server.stop();
      assertEquals(code, 0, what);
      const faults = log.filter(({ event }) => event === "error");
      assert([1, 2].includes(faults.length), `${what}: ${JSON.stringify(faults)}`);
      assertEquals(log.at(-1)?.["lost"], 20, what);
      assertMatch(
        String(faults[0]?.["cause"]),
        /the ledger "[^"]*" \(DATABASE_URL\) .* file was removed /,
      );
      if (what === "is replaced by its copy") assertEquals(await Deno.readFile(path), newcomer);
    })
  ));
});

needing("processes", LINUX, program("sh"))(
  "a disk that is full while SQLite commits is a fault that waiting may mend",
  () =>
    inFolder(async (folder) => {
      const script = `
        import { SqliteDatabase } from "${fromRoot("lib/database/sqlite/database.ts")}";
        import { DENO_RUNTIME as runtime } from "${
        fromRoot("lib/database/sqlite/deno_runtime.ts")
      }";
        import { LEDGER as schema } from "${fromRoot("lib/usage/record/schema.ts")}";
        const options = { schema, synchronous: "NORMAL", runtime, timeout: 0 };
        const database = await SqliteDatabase.open("${folder}/ledger.sqlite", options);
        const text = "INSERT INTO media_head_day (day, route, client, calls) VALUES ($1, '', $2, 1)";
        const write = (day) => database.transact([{ text, values: [day, "a".repeat(4_000)] }]);
        for (let day = 0;; day++) {
          await write(day).catch(({ fault, isLasting }) => {
            console.log(fault, isLasting);
            Deno.exit();
          });
        }`;
      // No file may be longer than 400 kB; `ulimit` counts in blocks of 512 bytes.
      const limited = `trap "" XFSZ; ulimit -f 800; exec "$0" eval "$1"`;
      const words = ["-c", limited, Deno.execPath(), script];
      const { stdout, stderr } = await runProgram("sh", words, { cwd: fromRoot(".") });
      assertMatch(stdout, / cannot be written false\n$/, stderr);
    }),
);
