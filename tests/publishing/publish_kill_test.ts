/** What publishers that were killed leave behind, and those that wait. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, makeCatalogue, media, mediaCommand } from "../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";

type LocalSubject = Awaited<ReturnType<typeof openLocal>>;

const [onFiles, asProcess] = [needing("files"), needing("processes")];
const onPostgres = needing(...POSTGRES);
const postgres = shared(POSTGRES, () => PostgresServer.start());

/** Files that no published item uses. */
async function straysOf({ storage, folder }: LocalSubject): Promise<string[]> {
  const names = [];
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/files`)) {
    if (!isDirectory) continue;
    for await (const file of Deno.readDir(`${folder}/files/${name}`)) {
      if (name.length > 2 || !await storage.catalogue.uses(file.name)) names.push(file.name);
    }
  }
  return names;
}

const CONTENT = new TextEncoder().encode("content");

const DIGEST = createHash("sha256").update(CONTENT).digest("hex");

/** The files that a kill at each point leaves. */
const LEFTOVERS: [when: string, files: string[]][] = [
  ["while content was being staged", [`staged/${crypto.randomUUID()}`]],
  ["before content was in its place", [`unsettled/${DIGEST}`]],
  [
    "between content and record, or between tombstone and removal",
    [`unsettled/${DIGEST}`, `${DIGEST.slice(0, 2)}/${DIGEST}`],
  ],
];

for (const [when, files] of LEFTOVERS) {
  onFiles(`the next publish clears up after one that was killed ${when}`, async () => {
    await using subject = await openLocal();
    for (const file of files) {
      const path = `${subject.folder}/files/${file}`;
      await Deno.mkdir(dirname(path), { recursive: true });
      await Deno.writeFile(path, CONTENT);
    }
    assertEquals((await straysOf(subject)).length, files.length);
    await subject.publish(newMetadata(), new Uint8Array([1]));
    assertEquals(await straysOf(subject), []);
  });
}

onFiles("the next publish keeps the content of one killed after its commit", async () => {
  await using subject = await openLocal();
  const item = await subject.publish(newMetadata(), CONTENT);
  await Deno.writeFile(`${subject.folder}/files/unsettled/${item.digest}`, new Uint8Array());
  await subject.publish(newMetadata(), new Uint8Array([1]));
  assertEquals((await subject.storage.find(item.token)).state, "published");
  assertEquals(await straysOf(subject), []);
});

asProcess("a publish leaves the staged content of a running one alone", async () => {
  await using subject = await openLocal();
  const release = Promise.withResolvers<void>();
  const half = Promise.withResolvers<void>();
  const slow = (async function* () {
    yield CONTENT.subarray(0, 3);
    half.resolve();
    await release.promise;
    yield CONTENT.subarray(3);
  })();
  const item = { ...newMetadata(), digest: DIGEST, length: CONTENT.length };
  const publishing = subject.storage.publish(item, { read: () => slow });
  await half.promise;
  // Another process, so that it cleans up.
  assertEquals((await media(subject.folder, ["publish", SAMPLE_MP3])).code, 0);
  release.resolve();
  await publishing;
  assertEquals(await new Response(await subject.storage.open(item)).bytes(), CONTENT);
});

asProcess(
  "a publish waits for a backup, however many publishers were killed while it ran",
  async () => {
    await using subject = await openLocal();
    using lock = await Deno.open(`${subject.folder}/files/lock`);
    await lock.lock(true);
    const name = `the lock of "${subject.folder}/files" (CONTENT)`;
    const waiting = `media: waiting for ${name}, which another process holds\n`;
    for (const isKilled of [true, true, false]) {
      const child = mediaCommand(subject.folder, ["publish", SAMPLE_MP3]).spawn();
      const output = new Response(child.stdout).text();
      let errors = "";
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        errors += text;
        if (errors !== waiting) continue;
        if (isKilled) child.kill("SIGKILL");
        else await lock.unlock();
      }
      const [{ success }] = await Promise.all([child.status, output]);
      assertEquals([success, errors], [!isKilled, waiting]);
    }
  },
);

onPostgres(
  "the next publish waits for the transaction of one killed in its COMMIT",
  async () => {
    await inFolder(async (folder) => {
      const database = await postgres().createDatabase();
      const settings = { DATABASE_URL: postgres().urlOf(database) };
      const publish = (file: string) => mediaCommand(folder, ["publish", file], settings).spawn();
      await makeCatalogue(folder, settings);
      const trigger = "CONSTRAINT TRIGGER hold AFTER INSERT ON item DEFERRABLE INITIALLY DEFERRED";
      const release = await postgres().hold(database, trigger);
      const waiting = async (count: number) => {
        const text = `SELECT 1 FROM pg_stat_activity
        WHERE datname = '${database}' AND wait_event_type = 'Lock'`;
        for (let tries = 0; (await postgres().query(text)).length !== count; tries++) {
          assert(tries < 500, `there are never ${count} transactions that wait`);
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      };
      const first = publish(SAMPLE_MP4);
      await waiting(1);
      first.kill("SIGKILL");
      await first.output();
      const second = publish(SAMPLE_MP3);
      await waiting(2);
      await release();
      assertEquals((await second.output()).code, 0);
      const { stdout } = await media(folder, ["verify"], settings);
      assertMatch(stdout, /^2 items verified: 2 as published, .* 0 unused\n$/);
    });
  },
);
