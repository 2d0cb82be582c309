import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { importLines } from "../../../lib/publishing/import/import.ts";
import { readInput } from "../../../lib/publishing/import/input.ts";
import { readContent } from "../../../lib/publishing/publish_object.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import type { MediaStorage } from "../../../lib/storage/media/media_storage.ts";
import { newToken, parseToken } from "../../../lib/storage/token.ts";
import { linkedItem } from "../../storage/media/media_storage_suite.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { inFolder } from "../../support/media_cli.ts";
import { openMemory } from "../../support/memory_storage.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../../support/paths.ts";
import { needing } from "../../support/permissions.ts";

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
}

/** Imports lines, given as objects or as text. */
async function importAll(
  storage: MediaStorage,
  given: readonly (object | string)[],
  { isDryRun = false, signal = new AbortController().signal } = {},
): Promise<Imported> {
  const refusals: string[] = [];
  const rejects: Uint8Array<ArrayBuffer>[] = [];
  const outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0, renewed: 0 };
  const lines = given.map((line) => typeof line === "string" ? line : `${JSON.stringify(line)}\n`);
  await importLines(storage, await readInput(readContent(new Blob(lines).stream(), signal)), {
    outcomes,
    isDryRun,
    derivesTokens: false,
    signal,
    resolve: (path) => Promise.resolve(path),
    async onRefused({ number, bytes }, { reason, kind }) {
      await Promise.resolve();
      assert(kind !== "other", `this refusal has no kind: ${reason}`);
      rejects.push(new Uint8Array(bytes));
      refusals.push(`${number}: ${reason}`);
    },
    onMessage() {},
    onLeft() {},
    onFound() {},
    onProgress() {},
  });
  const { renewed: _, ...counts } = outcomes; // of objects only
  return {
    outcomes: Object.values(counts),
    refusals,
    rejects: await new Blob(rejects).text(),
  };
}

/** A line, and why it is refused, if it is. */
type Row = [line: object, refusal?: RegExp | undefined];

/** Imports lines that are refused as expected, and returns the outcomes. */
async function importRows(storage: MediaStorage, rows: Row[]): Promise<readonly number[]> {
  const { outcomes, refusals } = await importAll(storage, rows.map(([line]) => line));
  for (const [index, [line, refusal]] of rows.entries()) {
    const message = refusals.find((text) => text.startsWith(`${index + 1}: `));
    if (refusal === undefined) assertEquals(message, undefined);
    else assertMatch(message ?? "", refusal, JSON.stringify(line));
  }
  return outcomes;
}

test("an import adds every source, and repeating it changes nothing", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  await subject.publish(newMetadata(), CONTENT);
  const [content, url, tombstone] = [newToken(), newToken(), newToken()];
  const lines = [
    { ...STORED, token: content, name: "a.mp3", language: "en-gb", publishedAt: "2026-11-21" },
    { ...LINKED, token: url.toUpperCase(), validator: '"x"' },
    { token: tombstone, state: "unpublished", kind: "video", unpublishedAt: "2026-11-22" },
    { path: SAMPLE_MP3, language: "en-GB" },
    { path: SAMPLE_MP4, token: newToken(), kind: "video", publishedAt: "2026-11-20" },
    STORED,
    LINKED,
  ];
  const before = await storage.catalogue.version();
  assertEquals((await importAll(storage, lines)).outcomes, [7, 0, 0, 0]);
  assert(await storage.catalogue.version() !== before, "the version changes");
  const item = {
    ...{ token: content, kind: "audio" as const, type: "audio/mp4", length: CONTENT.length },
    ...{ digest: SHA_256, name: "a.mp3", language: "en-GB" },
    publishedAt: Date.UTC(2026, 10, 21),
  } as const;
  assertEquals(await storage.catalogue.find(content), entryOf(item));
  const linked = await storage.catalogue.find(url);
  assert(linked.state === "linked" && linked.item.validator === '"x"');
  assertEquals(await storage.catalogue.find(tombstone), {
    ...{ state: "unpublished", kind: "video", unpublishedAt: Date.UTC(2026, 10, 22) },
  });

  const listed = await Array.fromAsync(storage.catalogue.list());
  assert(listed.every(([token]) => parseToken(token) === token), "all tokens are of version 4");
  const version = await storage.catalogue.version();
  const again = await importAll(storage, lines);
  assertEquals([again.outcomes, again.refusals], [[0, 7, 0, 0], []]);
  assertEquals(await Array.fromAsync(storage.catalogue.list()), listed);
  assertEquals(await storage.catalogue.version(), version);
});

test("an import refuses different facts for the same token, and names them", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const { token } = await subject.publish(
    { ...newMetadata(), name: "a.mp3", publishedAt: 5000 },
    CONTENT,
  );
  const url = linkedItem();
  await storage.catalogue.add(url);
  const gone = linkedItem();
  await storage.catalogue.add(gone);
  await storage.unpublish(gone.token, 5000);
  const same = { ...STORED, token, name: "a.mp3" };
  const tombstone = { state: "unpublished", token: gone.token, kind: "audio" };
  const rows: Row[] = [
    [same],
    [{ ...same, publishedAt: "1970-01-01T00:00:05Z" }],
    [
      { ...same, publishedAt: "1970-01-01T00:00:06Z" },
      /"publishedAt" is "1970-01-01T00:00:06.000Z"; token .* has "1970-01-01T00:00:05.000Z" in /,
    ],
    [
      { ...same, name: "b.mp3" },
      /"name" is "b.mp3"; token .* has "a.mp3" in the catalogue, and items never change; line 1 has this token, too$/,
    ],
    [{ ...same, length: 8 }, /"length" is 8; token .* has 7 in the catalogue/],
    [{ ...same, language: "de" }, /"language" is "de"; token .* has none in the catalogue/],
    [
      { path: SAMPLE_MP3, token },
      /"type" is "audio\/mpeg"; token .* has "audio\/mp4" in the catalogue/,
    ],
    [{ path: "/no/such/file", token, sha256: SHA_256, name: "a.mp3" }],
    [{ ...LINKED, token }, /"type" is null; token .* has "audio\/mp4" in the catalogue/],
    [
      { ...LINKED, token: url.token },
      /"location" is "https:\/\/h\/a.mp3"; token .* has "https:\/\/cdn.example\/a/,
    ],
    [
      { ...LINKED, token: url.token, location: url.location, type: "audio/mpeg" },
      /"type" is "audio\/mpeg"; token .* has none in the catalogue/,
    ],
    [
      { ...LINKED, token: gone.token, location: gone.location },
      /"token" is ".*"; it was unpublished at 1970-01-01T00:00:05.000Z, and tokens are never reused$/,
    ],
    [{ ...tombstone, kind: "video" }, /"kind" is "video"; token .* has "audio" in the catalogue/],
    [tombstone],
    [
      { ...tombstone, unpublishedAt: "2026-11-21" },
      /"unpublishedAt" is "2026-11-21T00:00:00.000Z"; token .* has "1970-01-01T00:00:05.000Z" i/,
    ],
    [{ state: "unpublished", token, kind: "video" }, /"kind" is "video"; token .* has "audio" in /],
  ];
  assertEquals(await importRows(storage, rows), [0, 4, 12, 0]);
});

test("an import refuses whatever goes wrong with a line, in order, and imports the rest", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  await subject.publish(newMetadata(), CONTENT);
  const object = { location: "s3://bucket/key", validator: '"x"', sha256: SHA_256, length: 7 };
  const rows: Row[] = [
    [{ ...STORED, sha256: "ab".repeat(32) }, /content (ab){32} is missing/],
    [{ ...STORED, length: 8 }, / has 7 bytes instead of 8/],
    [{ ...STORED, name: "sound.mp3" }],
    [{ path: "/no/such/file" }, /: [^"]*"\/no\/such\/file"$/],
    [{ path: SAMPLE_MP3, sha256: SHA_256 }, /sample.mp3" has the SHA-256 bcd2.*; expected /],
    [{ path: SAMPLE_MP3, length: 5 }, /sample.mp3" has 26186 bytes; expected 5$/],
    [{ location: "s3://bucket/key" }, /CONTENT is not a bucket/],
    [{ ...object, type: "audio/mpeg" }, /CONTENT is not a bucket/],
    [{ ...LINKED, location: { toString: 0 } }, /"location" is an object; expected an http/],
    [{ path: "/tmp" }, /"\/tmp" is not a file$/],
    [{ path: "/dev/zero", sha256: SHA_256 }, /"\/dev\/zero" is not a file$/],
    [{ path: "a\0b" }, /cannot be read/],
    [{ path: "\ud800" }, / "\\ud800"$/],
    [{ location: "s3://b/\ud800" }, /"location" is "s3:\/\/b\/\\ud800"; expected s3:.* in Unicode/],
    [{ location: "s3://b/\0" }, /"location" is "s3:\/\/b\/\\u0000"; expected s3/],
    [{ path: SAMPLE_MP3, length: 5 }, /".*" has 26186 bytes; expected 5$/],
    [{ ...STORED, type: `audio/${"x".repeat(250)}` }, /"type" is "audio\/x+…"; expected an audio/],
    [{ ...LINKED, publishedAt: "2026-11-21" }],
  ];
  const outcomes = await importRows(
    storage,
    rows.map(([line, refusal]): Row => [{ token: newToken(), ...line }, refusal]),
  );
  assertEquals(outcomes, [2, 0, 16, 0]);
  assertEquals(await subject.digests(), [SHA_256], "no refused content is kept");
  const lines = Array.from({ length: 60 }, (_, index) =>
    [
      JSON.stringify(rows[index % rows.length]?.[0]),
      "x".repeat(60_000),
      JSON.stringify(STORED),
    ][index % 3] + "\n");
  const { refusals } = await importAll(subject.storage, lines);
  const numbers = refusals.map((text) => parseInt(text));
  assertEquals(numbers, numbers.toSorted((a, b) => a - b));
});

test("a token that is there twice is refused with its line, in a dry run as in an import", async () => {
  await using subject = await openMemory();
  const [url, file, gone, missing] = [newToken(), newToken(), newToken(), newToken()];
  const [known, other] = [newToken(), newToken()];
  await importAll(subject.storage, [known, other].map((token) => ({ ...LINKED, token })));
  const tombstone = { state: "unpublished", token: gone, kind: "audio" };
  const lines = [
    { ...LINKED, token: url },
    { ...LINKED, token: url, kind: "video" },
    { ...LINKED, token: url },
    { path: SAMPLE_MP3, token: file },
    { path: SAMPLE_MP4, token: file },
    { path: SAMPLE_MP3, token: file },
    { ...LINKED, token: gone },
    tombstone,
    tombstone,
    { ...LINKED, token: gone },
    { ...LINKED, token: known },
    { ...LINKED, token: known, kind: "video" },
    { path: "/none", token: missing },
    { ...LINKED, token: missing }, // after a line that is refused
    { path: "/none", token: url, kind: "audio" }, // refused for its file
    { ...LINKED, token: other, kind: "video" },
    { ...LINKED, token: other, kind: "video" },
  ];
  for (const isDryRun of [true, false]) {
    const { outcomes, refusals } = await importAll(subject.storage, lines, { isDryRun });
    assertEquals(outcomes, [5, 4, 8, 1]);
    const named = refusals.map((text) => [
      Number.parseInt(text),
      Number(/; line (\d+) has this token, too$/.exec(text)?.[1]),
    ]);
    assertEquals(named, [
      [2, 1],
      [5, 4],
      [10, 7],
      [12, 11],
      [13, NaN],
      [15, isDryRun ? 1 : NaN], // whose file a dry run does not need
      [16, NaN],
      [17, 16],
    ]);
    const twice = `2: "token" is "${url}"; expected each token once; line 1 has this token, too`;
    if (isDryRun) assertEquals(refusals[0], twice);
  }
});

test("a tombstone in an import unpublishes, and is never undone", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
  const url = linkedItem();
  const unpublishedAt = "2026-11-21T00:00:00.000Z";
  const tombstones = [token, url.token].map((token) => (
    { token, state: "unpublished", kind: "audio", unpublishedAt }
  ));
  const published = { ...STORED, token };
  // In one file: each line is compared with the result of those before it.
  const lines = [{ ...LINKED, token: url.token }, ...tombstones, published];
  const { outcomes, refusals } = await importAll(storage, lines);
  assertEquals(outcomes, [3, 0, 1, 2]);
  assertMatch(refusals[0] ?? "", /^4: "token" is ".*"; it was unpublished/);
  assertEquals(await subject.digests(), []);
  for (const one of [token, url.token]) {
    const { state } = await storage.find(one);
    assertEquals(state, "unpublished");
  }
  assertEquals((await importAll(storage, lines)).outcomes, [0, 2, 2, 0]);
});

test("an import takes effect line by line", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
  const [renewed, late] = [newToken(), newToken()];
  const { outcomes, refusals } = await importAll(storage, [
    "nonsense\n",
    { ...STORED, token: renewed }, // its content is kept, since it is used again
    { token, state: "unpublished", kind: "audio" },
    { ...STORED, token: late, length: 8 },
    { path: "/no/such/file", token: newToken() },
    { token: renewed, state: "unpublished", kind: "audio" },
    { ...STORED, token: late }, // its content is gone
    "more nonsense\n",
  ]);
  assertEquals(outcomes, [3, 0, 5, 2]);
  assertEquals(refusals.map((text) => Number.parseInt(text)), [1, 4, 5, 7, 8]);
  assertEquals(await subject.digests(), []);
});

test("a dry run reports the same, and writes nothing", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const { token } = await subject.publish({ ...newMetadata(), publishedAt: 5000 }, CONTENT);
  const lines = [
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
  const before = [
    await Array.fromAsync(storage.catalogue.list()),
    await storage.catalogue.version(),
  ];
  const dry = await importAll(storage, lines, { isDryRun: true });
  assertEquals(dry.outcomes, [5, 1, 4, 0]);
  assertEquals((await importAll(storage, unpublishing, { isDryRun: true })).outcomes, [1, 0, 0, 1]);
  assertEquals(
    [await Array.fromAsync(storage.catalogue.list()), await storage.catalogue.version()],
    before,
  );
  assertEquals(await subject.digests(), [SHA_256]);
  assertEquals((await importAll(storage, lines)).outcomes, dry.outcomes);
});

test("an import continues after invalid lines, and returns them unchanged", async () => {
  await using subject = await openMemory();
  const sound = [newToken(), newToken(), newToken()]
    .map((token) => JSON.stringify({ ...LINKED, token }));
  const lines = [
    `\ufeff${sound[0]}\r\n`,
    "\r\n",
    ' {"kind": "radio"}\r\n',
    " \t\n",
    "\u0000\n",
    `${sound[1]}\n`,
    `${sound[2]}\n`,
    '{"path": "cut of', // the end of a truncated file
  ];
  const { outcomes, rejects } = await importAll(subject.storage, lines);
  assertEquals(outcomes, [3, 0, 3, 0]);
  assertEquals(rejects, [2, 4, 7].map((at) => lines[at]).join(""));
});

test("an import reports the outcome of each line while another process publishes", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const items = Array.from({ length: 20 }, () => linkedItem());
  const lines = items.map(({ token, kind, location }) => ({ token, kind, location }));
  const { addAll } = storage;
  storage.addAll = async (...args) => { // just before it, another process publishes some of them, and others
    storage.addAll = addAll;
    for (const item of items.slice(0, 5)) await storage.catalogue.add(item);
    for (const item of items.slice(5, 10)) {
      await storage.catalogue.add({ ...item, location: "https://h/other" });
    }
    return await storage.addAll(...args);
  };
  const { outcomes, refusals } = await importAll(storage, lines);
  assertEquals(outcomes, [10, 5, 5, 0]);
  assertMatch(
    refusals[0] ?? "",
    /"location" is ".*"; token .* has "https:\/\/h\/other" in the catalogue/,
  );
});

test("an import stops between two lines, and continues when run again", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const lines = Array.from({ length: 6_000 }, () => ({ ...LINKED, token: newToken() }));
  const controller = new AbortController();
  const stop = new Error("stop");
  const { addAll } = storage;
  let [batches, count] = [0, 0];
  storage.addAll = async (batch) => {
    assert(batch.length < 1_000, "each transaction is short");
    count += batch.length;
    if (++batches === 7) controller.abort(stop);
    return await addAll.call(storage, batch);
  };
  await assertRejects(() => importAll(storage, lines, controller), Error, "stop");
  const { length } = await Array.fromAsync(storage.catalogue.list());
  assertEquals(length, count, "the batch in flight is completed");
  storage.addAll = addAll;
  assertEquals((await importAll(storage, lines)).outcomes, [6_000 - length, length, 0, 0]);
});

test("an import ends with a storage fault, and blames no line", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  storage.addAll = () => Promise.reject(new StorageError("memory", "down"));
  await assertRejects(() => importAll(storage, [{ ...LINKED }]), StorageError, "down");
});

test("an import reads no published file whose SHA-256 is stated", () =>
  inFolder(async (folder) => {
    await using subject = await openMemory();
    const [plain, stated] = [`${folder}/a.mp3`, `${folder}/b.mp3`];
    for (const path of [plain, stated]) await Deno.copyFile(SAMPLE_MP3, path);
    const sha256 = createHash("sha256").update(await Deno.readFile(SAMPLE_MP3)).digest("hex");
    const lines = [{ path: plain }, { path: stated, sha256 }, {
      ...{ path: stated, sha256, token: newToken() },
    }];
    assertEquals((await importAll(subject.storage, lines)).outcomes, [3, 0, 0, 0]);
    await Deno.remove(stated);
    subject.storage.publish = () => Promise.reject(new Error("expected no copy"));
    assertEquals((await importAll(subject.storage, lines)).outcomes, [0, 3, 0, 0]);
  }));
