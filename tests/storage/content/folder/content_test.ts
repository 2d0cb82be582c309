import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import { readAtOnce } from "../../../../lib/storage/content/folder/file_part.ts";
import type { MediaStorage } from "../../../../lib/storage/media/media_storage.ts";
import { newMetadata } from "../../storage_suite.ts";
import { streamOf } from "../../../support/body.ts";
import { openIn, openLocal } from "../../../support/local_storage.ts";
import { publishTo } from "../../../support/media_subject.ts";
import { openMemoryEngine } from "../../../support/memory_storage.ts";
import { LINUX, needing, program } from "../../../support/permissions.ts";
import { mustRun } from "../../../support/run.ts";

const test = needing("files");

needing("processes", program("mkfifo"), program("ln"), program("mkdir"))(
  "content that is no regular file is a fault, and blocks nothing",
  async () => {
    await using subject = await openLocal();
    const { storage, publish, damage, folder } = subject;
    const item = await publish(newMetadata(), new Uint8Array(10));
    const path = `${folder}/files/${item.digest.slice(0, 2)}/${item.digest}`;
    for (const command of [["mkfifo", path], ["ln", "-s", "/dev/zero", path], ["mkdir", path]]) {
      await damage(item, undefined);
      const [program = "", ...args] = command;
      await mustRun(program, args);
      await assertRejects(() => storage.find(item.token), StorageError, "is not a regular file");
      await assertRejects(() => storage.open(item), StorageError, "is not a regular file");
    }
  },
);

test("FolderContent.open() reads nothing of a range before it is requested", async () => {
  await using subject = await openLocal();
  const { storage, publish, damage } = subject;
  const item = await publish(newMetadata(), new Uint8Array(400_000));
  const range = { first: 0, last: 299_999 };
  const reader = (await streamOf(() => storage.open(item, range))).getReader();
  await new Promise((resolve) => setTimeout(resolve)); // enough time to read ahead
  await damage(item, new Uint8Array()); // the same file, now empty
  await assertRejects(() => reader.read(), StorageError, "ended early");
});

test("readAtOnce() refuses a part that the file ends before", async () => {
  await using subject = await openLocal();
  using file = await Deno.open(`${subject.folder}/files/lock`); // which has 36 bytes
  assertThrows(() => readAtOnce(file, 37, "ab"), StorageError, "content ab ended early");
});

async function publishText(storage: MediaStorage, text: string): Promise<string> {
  return (await publishTo(storage, newMetadata(), new TextEncoder().encode(text))).digest;
}

needing("processes", LINUX)(
  "what is published has the mode of the folder, and its group by the setgid bit",
  async () => {
    const folder = await Deno.makeTempDir({ prefix: "media-head-" });
    const files = `${folder}/files`;
    await Deno.mkdir(files);
    if (Deno.uid() === 0) await Deno.chown(files, null, 1234); // only root is in every group
    await Deno.chmod(files, 0o2750);
    const { uid, gid } = await Deno.stat(files);
    const before = Deno.umask(0o077);
    const { media: storage, close } = await openIn(folder);
    try {
      const digest = await publishText(storage, "content");
      const shard = `${files}/${digest.slice(0, 2)}`;
      const rows: [path: string, mode: number][] = [
        [`${files}/lock`, 0o640],
        [`${files}/staged`, 0o2750],
        [`${files}/unsettled`, 0o2750],
        [shard, 0o2750],
        [`${shard}/${digest}`, 0o640],
      ];
      for (const [path, expected] of rows) {
        const found = await Deno.stat(path);
        const actual = [(found.mode ?? 0) & 0o7777, found.uid, found.gid];
        assertEquals(actual, [expected, uid, gid], path);
      }
    } finally {
      Deno.umask(before);
      await close();
      await Deno.remove(folder, { recursive: true });
    }
  },
);

test("publishing the same content again repairs a damaged file", async () => {
  await using subject = await openLocal();
  const { storage, folder } = subject;
  const digest = await publishText(storage, "content");
  const path = `${folder}/files/${digest.slice(0, 2)}/${digest}`;
  for (const damaged of ["content", "CONTENT", "conten", ""]) {
    await Deno.writeTextFile(path, damaged);
    await publishText(storage, "content");
    assertEquals(await Deno.readTextFile(path), "content");
  }
});

test("a change that is committed stays so if the database fails right after it", async () => {
  const engine = await openMemoryEngine();
  await using subject = await openLocal(Promise.resolve(engine));
  const { storage, publish, digests } = subject;
  const [kept, removed] = [new Uint8Array([1]), new Uint8Array([2])];
  const { token, digest } = await publish(newMetadata(), removed);
  {
    const failure = () => Promise.reject(new StorageError("test", "down"));
    using _failure = stub(engine.catalogue, "usesAfterChanges", failure);
    assertEquals(await storage.unpublish(token, 5000), true);
    await assertRejects(() => storage.deleteLeftovers(digest), StorageError, "down");
    await assertRejects(() => publish(newMetadata(), kept), StorageError, "down"); // nothing is done
  }
  const item = await publish(newMetadata(), kept);
  assertEquals(await digests(), [item.digest], "what was left is deleted");
});
