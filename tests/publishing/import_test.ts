import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { entryOf, StorageError } from "../../lib/storage/storage.ts";
import { newToken, parseToken } from "../../lib/storage/token.ts";
import type { MediaStorage } from "../../lib/storage/media_storage.ts";
import { linkedItem } from "../storage/linked_item_suite.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { inFolder } from "../support/media_cli.ts";
import { openMemory } from "../support/memory_storage.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { loadImport } from "../support/publishing.ts";

const test = needing("environment", "files");

const CONTENT = new TextEncoder().encode("content");
const SHA_256 = createHash("sha256").update(CONTENT).digest("hex");
const STORED = { sha256: SHA_256, length: CONTENT.length, type: "audio/mp4" };
const LINKED = { kind: "audio", location: "https://h/a.mp3" };

/** The result of an import. */
interface Imported {
  /** The numbers added, unchanged, refused and unpublished. */
  readonly outcomes: readonly number[];
  /** Messages by line. */
  readonly refusals: readonly string[];
  readonly rejects: string;
  readonly bytes: number;
}

/** Imports records, or lines as given. */
async function importAll(
  storage: MediaStorage,
  given: readonly (object | string)[] | ReadableStream<Uint8Array<ArrayBuffer>>,
  { isDryRun = false, signal = new AbortController().signal } = {},
): Promise<Imported> {
  const { Importer } = await loadImport();
  const refusals: [number, string][] = [];
  const rejects: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const importer = new Importer(storage, {
    isDryRun,
    signal,
    resolve: (path) => path,
    async refuse({ number, bytes }, reason) {
      await Promise.resolve();
      rejects.push(new Uint8Array(bytes));
      if (reason !== undefined) refusals.push([number, `${number}: ${reason.message}`]);
    },
    advance: (count) => bytes += count,
  });
  const input = given instanceof ReadableStream ? given : new Blob([
    given.map((line) => typeof line === "string" ? line : `${JSON.stringify(line)}\n`).join(""),
  ]).stream();
  await importer.run(input);
  const { added, unchanged, refused, unpublished } = importer.outcomes;
  return {
    outcomes: [added, unchanged, refused, unpublished],
    refusals: refusals.sort(([one], [other]) => one - other).map(([, text]) => text),
    rejects: await new Blob(rejects).text(),
    bytes,
  };
}

test("an import adds every source, and repeating it changes nothing", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  await subject.publish(newMetadata(), CONTENT);
  const [content, url, tombstone] = [newToken(), newToken(), newToken()];
  const records = [
    { ...STORED, token: content, name: "a.mp3", language: "en-gb", publishedAt: "2026-11-21" },
    { ...LINKED, token: url.toUpperCase(), validator: '"x"' },
    { token: tombstone, state: "unpublished", kind: "video", unpublishedAt: "2026-11-22" },
    { path: SAMPLE_MP3, language: "en-GB" },
    { path: SAMPLE_MP4, token: newToken(), kind: "video", publishedAt: "2026-11-23" },
    STORED,
    LINKED,
  ];
  const before = await storage.version();
  assertEquals((await importAll(storage, records)).outcomes, [7, 0, 0, 0]);
  assert(await storage.version() !== before, "the version changes");
  const item = {
    ...{ token: content, kind: "audio" as const, type: "audio/mp4", length: CONTENT.length },
    ...{ digest: SHA_256, name: "a.mp3", language: "en-GB" },
    publishedAt: Date.UTC(2026, 10, 21),
  } as const;
  assertEquals(await storage.lookUp(content), entryOf(item));
  const linked = await storage.lookUp(url);
  assert(linked.state === "linked" && linked.item.validator === '"x"');
  assertEquals(await storage.lookUp(tombstone), {
    ...{ state: "unpublished", kind: "video", unpublishedAt: Date.UTC(2026, 10, 22) },
  });

  const listed = await Array.fromAsync(storage.list());
  assert(listed.every(([token]) => parseToken(token) === token), "all tokens are of version 4");
  const version = await storage.version();
  const again = await importAll(storage, records);
  assertEquals([again.outcomes, again.refusals], [[0, 7, 0, 0], []]);
  assertEquals(await Array.fromAsync(storage.list()), listed);
  assertEquals(await storage.version(), version);
});

test("an import refuses different facts for the same token, and names them", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  const { token } = await subject.publish(
    { ...newMetadata(), name: "a.mp3", publishedAt: 5000 },
    CONTENT,
  );
  const url = linkedItem();
  await storage.publishLink(url);
  const gone = linkedItem();
  await storage.publishLink(gone);
  await storage.unpublish(gone.token, 5000);
  const same = { ...STORED, token, name: "a.mp3" };
  const { outcomes, refusals } = await importAll(storage, [
    same,
    { ...same, publishedAt: "1970-01-01T00:00:05Z" },
    { ...same, publishedAt: "1970-01-01T00:00:06Z" },
    { ...STORED, token },
    { ...same, name: "b.mp3" },
    { ...same, type: "audio/ogg" },
    { ...same, length: 8 },
    { ...same, language: "de" },
    { path: SAMPLE_MP3, token },
    { path: "/no/such/file", token, sha256: SHA_256, name: "a.mp3" },
    { ...LINKED, token },
    { ...LINKED, token: url.token },
    { ...LINKED, token: url.token, location: url.location, type: "audio/mpeg" },
    { ...LINKED, token: gone.token, location: gone.location },
    { state: "unpublished", token: gone.token, kind: "video" },
    { state: "unpublished", token: gone.token, kind: "audio" },
    { state: "unpublished", token: gone.token, kind: "audio", unpublishedAt: "2026-11-21" },
    { state: "unpublished", token, kind: "video" },
  ]);
  assertEquals(outcomes, [0, 4, 14, 0]);
  const expected = [
    /^3: "publishedAt" is "1970-01-01T00:00:06.000Z"; token .* has "1970-01-01T00:00:05.000Z" on /,
    /^4: "name" is null; token .* has "a.mp3" on record, and items never change$/,
    /^5: "name" is "b.mp3"; token .* has "a.mp3" on record/,
    /^6: "type" is "audio\/ogg"; token .* has "audio\/mp4" on record/,
    /^7: "length" is 8; token .* has 7 on record/,
    /^8: "language" is "de"; token .* has none on record/,
    /^9: "type" is "audio\/mpeg"; token .* has "audio\/mp4" on record/,
    /^11: "type" is null; token .* has "audio\/mp4" on record/,
    /^12: "location" is "https:\/\/h\/a.mp3"; token .* has "https:\/\/cdn.example\/a/,
    /^13: "type" is "audio\/mpeg"; token .* has none on record/,
    /^14: "token" is ".*"; it was unpublished at 1970-01-01T00:00:05.000Z, and tokens are never/,
    /^15: "kind" is "video"; token .* has "audio" on record/,
    /^17: "unpublishedAt" is "2026-11-21T00:00:00.000Z"; token .* has "1970-01-01T00:00:05.000Z" o/,
    /^18: "kind" is "video"; token .* has "audio" on record/,
  ];
  for (const [at, pattern] of expected.entries()) assertMatch(refusals[at] ?? "", pattern);
  assertEquals(refusals.length, expected.length);
});

test("an import refuses missing content, and files that differ from their record", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  await subject.publish(newMetadata(), CONTENT);
  const { outcomes, refusals } = await importAll(
    storage,
    [
      { ...STORED, sha256: "ab".repeat(32) },
      { ...STORED, length: 8 },
      { ...STORED, name: "sound.mp3" },
      { path: "/no/such/file" },
      { path: SAMPLE_MP3, sha256: SHA_256 },
      { path: SAMPLE_MP3, length: 5 },
      { path: SAMPLE_MP3, kind: "video" },
      { location: "s3://bucket/key" },
      {
        ...{ location: "s3://bucket/key", validator: '"x"', sha256: SHA_256, length: 7 },
        type: "audio/mpeg",
      },
    ].map((record) => ({ token: newToken(), ...record })),
  );
  assertEquals(outcomes, [1, 0, 8, 0]);
  const expected = [
    /^1: .*content (ab){32} is missing/,
    /^2: .* has 7 bytes instead of 8/,
    /^4: There is no file "\/no\/such\/file"$/,
    /^5: ".*sample.mp3" has the SHA-256 bcd2.*; expected /,
    /^6: ".*sample.mp3" has 26186 bytes; expected 5$/,
    /^7: ".*sample.mp3" is audio\/mpeg, so its kind cannot be video$/,
    /^8: .*CONTENT is not a bucket/,
    /^9: .*has no objects/,
  ];
  for (const [at, pattern] of expected.entries()) assertMatch(refusals[at] ?? "", pattern);
  assertEquals(await subject.digests(), [SHA_256], "no refused content is kept");
});

test("a tombstone in an import unpublishes, and is never undone", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
  const url = linkedItem();
  const unpublishedAt = "2026-11-21T00:00:00.000Z";
  const tombstones = [token, url.token].map((token) => (
    { token, state: "unpublished", kind: "audio", unpublishedAt }
  ));
  const published = { ...STORED, token };
  // In one file: each record is compared with the result of those before it.
  const records = [{ ...LINKED, token: url.token }, ...tombstones, published];
  const { outcomes, refusals } = await importAll(storage, records);
  assertEquals(outcomes, [3, 0, 1, 2]);
  assertMatch(refusals[0] ?? "", /^4: "token" is ".*"; it was unpublished/);
  assertEquals(await subject.digests(), []);
  for (const one of [token, url.token]) {
    const { state } = await storage.find(one);
    assertEquals(state, "unpublished");
  }
  assertEquals((await importAll(storage, records)).outcomes, [0, 2, 2, 0]);
});

test("a dry run reports the same, and writes nothing", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  const { token } = await subject.publish({ ...newMetadata(), publishedAt: 5000 }, CONTENT);
  const records = [
    { ...STORED, token },
    { ...STORED, token: newToken() },
    { ...STORED, token: newToken(), length: 8 },
    { ...LINKED, token: newToken() },
    { path: SAMPLE_MP3 },
    { path: SAMPLE_MP4, token: newToken() },
    { path: SAMPLE_MP4, token: newToken(), sha256: SHA_256 },
    { path: "/no/such/file", token: newToken() },
    { state: "unpublished", token: newToken(), kind: "audio" },
    "nonsense\n",
  ];
  const unpublishing = [{ state: "unpublished", token, kind: "audio" }];
  const before = [await Array.fromAsync(storage.list()), await storage.version()];
  const dry = await importAll(storage, records, { isDryRun: true });
  assertEquals(dry.outcomes, [5, 1, 4, 0]);
  assertEquals((await importAll(storage, unpublishing, { isDryRun: true })).outcomes, [1, 0, 0, 1]);
  assertEquals([await Array.fromAsync(storage.list()), await storage.version()], before);
  assertEquals(await subject.digests(), [SHA_256]);
  assertEquals((await importAll(storage, records)).outcomes, dry.outcomes);
});

test("an import continues after invalid lines, and returns them unchanged", async () => {
  await using subject = openMemory();
  const sound = [newToken(), newToken(), newToken()]
    .map((token) => JSON.stringify({ ...LINKED, token }));
  const long = `{"path":"${"x".repeat(300_000)}"}`;
  const lines = [
    `\ufeff${sound[0]}\r\n`,
    "\r\n",
    ' {"kind": "radio"}\r\n',
    " \t\n",
    `${long}\n`,
    "\u0000\n",
    `${sound[1]}\n`,
    `${long}\r\n`,
    `${sound[2]}\n`,
    '{"path": "cut of', // the end of a truncated file
  ];
  const { outcomes, refusals, rejects, bytes } = await importAll(subject.storage, lines);
  assertEquals(outcomes, [3, 0, 5, 0]);
  assertEquals(rejects, [2, 4, 5, 7, 9].map((at) => lines[at]).join(""));
  assertEquals(bytes, new Blob(lines).size, "all bytes are counted");
  assertMatch(refusals[1] ?? "", /^5: the line is longer than 65536 bytes$/);
  assertEquals(refusals.length, 5);
});

test("an import accepts a last line without a newline, and empty input", async () => {
  await using subject = openMemory();
  const last = JSON.stringify({ ...LINKED, token: newToken() });
  assertEquals((await importAll(subject.storage, [last])).outcomes, [1, 0, 0, 0]);
  assertEquals((await importAll(subject.storage, [])).outcomes, [0, 0, 0, 0]);
  assertEquals((await importAll(subject.storage, ["\n\n"])).outcomes, [0, 0, 0, 0]);
});

test("an import reports the outcome of each record while another process publishes", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  const items = Array.from({ length: 20 }, () => linkedItem());
  const records = items.map(({ token, kind, location }) => ({ token, kind, location }));
  const { addAll } = storage;
  storage.addAll = async (...args) => { // just before it, another process publishes some of them, and others
    storage.addAll = addAll;
    for (const item of items.slice(0, 5)) await storage.publishLink(item);
    for (const item of items.slice(5, 10)) {
      await storage.publishLink({ ...item, location: "https://h/other" });
    }
    return await storage.addAll(...args);
  };
  const { outcomes, refusals } = await importAll(storage, records);
  assertEquals(outcomes, [10, 5, 5, 0]);
  assertMatch(refusals[0] ?? "", /"location" is ".*"; token .* has "https:\/\/h\/other" on record/);
});

test("an import stops between two records, and continues when run again", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  const records = Array.from({ length: 30_000 }, () => ({ ...LINKED, token: newToken() }));
  const controller = new AbortController();
  const stop = new Error("stop");
  const { addAll } = storage;
  let batches = 0;
  storage.addAll = async (batch) => {
    assert(batch.length <= 500);
    const tokens = batch.map(([token]) => token);
    assertEquals(tokens, tokens.toSorted(), "added in the order of tokens");
    if (++batches === 7) controller.abort(stop);
    return await addAll.call(storage, batch);
  };
  await assertRejects(() => importAll(storage, records, controller), Error, "stop");
  const { length } = await Array.fromAsync(storage.list());
  assert(3500 <= length && length <= 4000, "the batches in flight are completed");
  storage.addAll = addAll;
  assertEquals((await importAll(storage, records)).outcomes, [30_000 - length, length, 0, 0]);

  // Also while it waits for input.
  const waiting = new AbortController();
  const input = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: () => waiting.abort(stop),
  }, { highWaterMark: 0 });
  await assertRejects(() => importAll(storage, input, waiting), Error, "stop");
});

test("an import ends with a storage fault, and blames no record", async () => {
  await using subject = openMemory();
  const { storage } = subject;
  storage.addAll = () => Promise.reject(new StorageError("memory", "down"));
  await assertRejects(() => importAll(storage, [{ ...LINKED }]), StorageError, "down");
});

test("an import reads no published file whose SHA-256 is stated", () =>
  inFolder(async (folder) => {
    await using subject = openMemory();
    const [plain, stated] = [`${folder}/a.mp3`, `${folder}/b.mp3`];
    for (const path of [plain, stated]) await Deno.copyFile(SAMPLE_MP3, path);
    const sha256 = createHash("sha256").update(await Deno.readFile(SAMPLE_MP3)).digest("hex");
    const records = [{ path: plain }, { path: stated, sha256 }, {
      ...{ path: stated, sha256, token: newToken() },
    }];
    assertEquals((await importAll(subject.storage, records)).outcomes, [3, 0, 0, 0]);
    await Deno.remove(stated);
    subject.storage.stage = () => Promise.reject(new Error("expected no copy"));
    assertEquals((await importAll(subject.storage, records)).outcomes, [0, 3, 0, 0]);
  }));
