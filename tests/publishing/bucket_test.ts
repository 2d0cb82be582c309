/** Publishing into a bucket and from it, importing from it, and the access that these need. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { publishFile } from "../../lib/publishing/publish.ts";
import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import type { Step } from "../../lib/storage/content/content_store.ts";
import { newToken } from "../../lib/storage/token.ts";
import { newPrefix, openBucket, settingsOf } from "../support/bucket_storage.ts";
import { mediaCommand, mediaHere, testsInFolder } from "../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { Relay } from "../support/relay.ts";
import { BUCKET, READER_KEY, S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const store = shared(S3_STORE, () => S3Store.start());
const postgres = shared(POSTGRES, () => PostgresServer.start());
const test = testsInFolder(...S3_STORE);

const MP3_DIGEST = "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa";

/** Returns how to run commands on storage in a folder and under a new prefix of the bucket. */
function bucketFor(folder: string) {
  const prefix = newPrefix();
  const environment = store().environment(prefix);
  const run = (...args: string[]) => mediaHere(folder, args, environment);
  return { prefix, environment, run };
}

test("media publish s3://… publishes an object in place", async (folder) => {
  const { prefix, environment, run } = bucketFor(folder);
  const key = "shows/2027/Ü (1)+a.mp4";
  const [location, path] = [`s3://${BUCKET}/${key}`, "shows/2027/%C3%9C%20%281%29%2Ba.mp4"];
  const content = await Deno.readFile(SAMPLE_MP4);
  await store().request("PUT", path, content);
  const published = await run("publish", location, "--language", "de", "--json");
  assertEquals([published.code, published.stderr], [0, ""]);
  const { publishedAt: _, urls: _urls, source, outcome, token, ...members } = JSON.parse(
    published.stdout,
  );
  assertEquals([source, outcome], [location, "published"]);
  assertEquals(members, {
    state: "published",
    ...{ kind: "video", type: "video/mp4", length: content.length, language: "de" },
    sha256: createHash("sha256").update(content).digest("hex"),
    ...{ name: "Ü (1)+a.mp4", location },
    validator: `"${createHash("md5").update(content).digest("hex")}"`,
  });
  assertEquals(await store().keys(prefix), [`${prefix}/media-head`]); // nothing is copied
  const skipped = await run("publish", location);
  assertMatch(skipped.stdout, new RegExp(`^Skipped: .* video ${token}\n`));
  const again = await run("publish", location, "--again");
  assertMatch(
    again.stdout,
    /\n {2}in place at s3:\/\/media\/shows\/2027\/Ü \(1\)\+a\.mp4\n$/,
  );

  await using server = await ServerProcess.start(environment, folder);
  const whole = await requestRaw(server.port, "GET", `/media/${token}`);
  assertEquals([whole.status, whole.content], [200, content]);
  assertEquals(field(whole, "etag"), `"${members.sha256}"`);
  const part = await requestRaw(server.port, "GET", `/video/${token}`, { Range: "bytes=-100" });
  assertEquals([part.status, part.content], [206, content.slice(-100)]);

  // A copy of the same content is another object.
  const copy = JSON.parse((await run("publish", SAMPLE_MP4, "--json")).stdout);
  assertEquals((await store().keys(prefix)).length, 2);
  const copied = `s3://${BUCKET}/${prefix}/${copy.sha256.slice(0, 2)}/${copy.sha256}`;
  const other = JSON.parse(again.stdout.replace(/^.* ([0-9a-f-]{36})\n.*/s, '"$1"'));
  const rows: [token: string, object: string, use: string][] = [
    [copy.token, copied, `no item uses ${copied}`],
    [token, location, `another item uses ${location}`],
    [other, location, `no item uses ${location}`],
  ];
  for (const [token, object, use] of rows) {
    const { code, stderr } = await run("unpublish", token);
    const before = `unpublishing ${token}, whose content is ${object}`;
    assertEquals([code, stderr], [0, `media: ${before}\nmedia: ${use}\n`]);
  }
  assertEquals((await store().keys(prefix)).length, 2);
  assertEquals((await store().request("HEAD", path)).status, 200);
  const { code, stdout } = await run("verify");
  assertEquals([code, stdout.startsWith(`+ ${copy.sha256}  no item uses`)], [1, true]);
});

test("media publish refuses objects that cannot be published, with one line each", async (folder) => {
  const { prefix, run } = bucketFor(folder);
  const put = (key: string, content: string, fields = {}) =>
    store().request("PUT", key, new TextEncoder().encode(content), fields);
  await put("text.mp3", "Dear diary,\n");
  await put("empty.mp3", "");
  await put("packed.mp3", "x", { "Content-Encoding": "gzip" });
  assertEquals((await run("publish", SAMPLE_MP3)).code, 0);
  const large = `${folder}/large.mp3`;
  using file = await Deno.open(large, { write: true, create: true });
  await file.truncate(5 * 2 ** 30 + 1);
  const own = `${prefix}/bc/${MP3_DIGEST}`;
  const refused: [source: string, reason: string][] = [
    ["s3://media/none.mp3", '"s3://media/none.mp3" does not exist'],
    ["s3://other/a.mp3", '"s3://other/a.mp3" is not an object in the bucket in CONTENT'],
    ["s3://media/", '"s3://media/" is not an object in the bucket in CONTENT'],
    ["s3://media/a/../b", '"s3://media/a/../b" is not an object in the bucket in CONTENT'],
    ["s3://media/empty.mp3", '"s3://media/empty.mp3" is empty'],
    [
      "s3://media/packed.mp3",
      '"s3://media/packed.mp3" is stored with Content-Encoding: gzip',
    ],
    [
      "s3://media/text.mp3",
      '"s3://media/text.mp3" has an unknown format; state its media type with --type',
    ],
    ...[own, `${prefix}/media-head`].map((key): [string, string] => [
      `s3://media/${key}`,
      `"s3://media/${key}" is content that was copied here`,
    ]),
    [
      large,
      `"${large}" has 5368709121 bytes; a bucket accepts at most 5368709120 in one PUT`,
    ],
  ];
  const { code, stderr } = await run("publish", ...refused.map(([source]) => source));
  const reasons = refused.map(([, reason]) => `refused    ${reason}\n`);
  assertEquals([code, stderr], [1, reasons.join("")]);
  const local = await mediaHere(folder, ["publish", "s3://media/text.mp3"], { CONTENT: folder });
  assertEquals(local.code, 1);
  assertMatch(local.stderr, /^media: .*CONTENT/);
  assertEquals((await run("list")).stdout.trimEnd().split("\n").length, 1);
  assertEquals(await store().keys(prefix), [own, `${prefix}/media-head`]);
});

test("media says which bucket cannot be used, and what the store answered", async (folder) => {
  const { environment } = bucketFor(folder);
  const rows: [changes: Record<string, string>, reason: RegExp][] = [
    [
      { CONTENT: "s3://missing/a" },
      /"s3:\/\/missing\/a" \(CONTENT\) cannot be read: .* 404 \(NoSuchBucket\)$/,
    ],
    [
      { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${freePort()}` },
      / \(.*refused.*\)$/,
    ],
  ];
  const answers: [changes: Partial<BucketSettings>, reason: string][] = [
    [{ secretAccessKey: "wrong" }, "403 (SignatureDoesNotMatch)"],
    [{ accessKeyId: "test:other" }, "403 ("],
    [
      { region: "eu-west-1" },
      "400 (AuthorizationHeaderMalformed); ",
    ],
  ];
  for (const [changes, reason] of answers) {
    const content = new BucketContent({ ...settingsOf(store(), newPrefix()), ...changes });
    const message = `cannot be read: the store answers ${reason}`;
    await assertRejects(() => content.id(), StorageError, message);
    await content.close();
  }
  for (const [changes, reason] of rows) {
    const all = { ...environment, ...changes };
    const { code, stderr } = await mediaHere(folder, ["publish", SAMPLE_MP3], all);
    assertEquals(code, 1, stderr);
    assertMatch(stderr, /^media: bucket: [^\n]*\n$/);
    assertMatch(stderr.trimEnd(), reason);
    const started = await assertRejects(() => ServerProcess.start(all, folder), Error);
    assertMatch(started.message.trimEnd(), reason);
  }
});

needing(...S3_STORE)(
  "a store that refuses a signature for its time names the clock that is wrong",
  async () => {
    const RealDate = Date;
    const rows: [offset: number, reason: string][] = [
      [-20, "20 minutes behind the store's"],
      [1_560, "1,560 minutes ahead of the store's"],
    ];
    for (const [minutes, reason] of rows) {
      const content = new BucketContent(settingsOf(store(), newPrefix()));
      const now = () => RealDate.now() + minutes * 60_000;
      globalThis.Date = class extends RealDate {
        constructor(value: number | string = now()) {
          super(value);
        }
        static override now = now;
      } as DateConstructor;
      try {
        const message = `answers 403 (RequestTimeTooSkewed); this machine's clock is ${reason}`;
        await assertRejects(() => content.id(), StorageError, message);
      } finally {
        globalThis.Date = RealDate;
        await content.close();
      }
    }
  },
);

test("media verify reports what differs in a bucket", async (folder) => {
  const { prefix, run } = bucketFor(folder);
  const mp3 = await Deno.readFile(SAMPLE_MP3);
  const keys = ["kept", "deleted", "replaced"].map((name) => `shows/${name}.mp3`);
  for (const key of keys) await store().request("PUT", key, mp3);
  const sources = [...keys.map((key) => `s3://${BUCKET}/${key}`), SAMPLE_MP3];
  const { stdout } = await run("publish", "--json", ...sources);
  const tokens = stdout.trimEnd().split("\n").map((line) => JSON.parse(line).token);
  const [kept, deleted, replaced, copied] = tokens;
  await store().request("DELETE", "shows/deleted.mp3");
  await store().request("PUT", "shows/replaced.mp3", mp3.with(100, 1));
  const other = mp3.with(20_000, mp3[20_000] as number ^ 1); // of the same length
  await store().request("PUT", encodeURI(`${prefix}/bc/${MP3_DIGEST}`), other);
  const stray = "ab".repeat(32);
  await store().request("PUT", encodeURI(`${prefix}/ab/${stray}`), other);
  for (const [options, mark] of [[[], "="], [["--content"], "*"]] as const) {
    const { code, stdout } = await run("verify", "--verbose", ...options);
    const marks = stdout.match(/^[=*+-] \S+/gm)?.toSorted();
    const expected = [`= ${kept}`, `- ${deleted}`, `* ${replaced}`, `${mark} ${copied}`];
    assertEquals([code, marks], [1, [...expected, `+ ${stray}`].toSorted()]);
  }
});

needing(...S3_STORE)("publishFile() reads a file once if the bucket has its content", async () => {
  await using subject = await openBucket(store());
  const steps: Step[] = [];
  const watch = (chunks: AsyncIterable<Uint8Array>, { step }: { step: Step }) => {
    steps.push(step);
    return chunks;
  };
  for (let time = 0; time < 2; time++) await publishFile(subject.storage, SAMPLE_MP3, { watch });
  assertEquals(steps, ["hashing", "sending", "hashing"]);
  assertEquals((await Array.fromAsync(subject.storage.catalogue.list())).length, 2);
});

/** The steps at which a takedown is killed, and the trigger that holds it there on PostgreSQL. */
const STEPS: [step: string, trigger: string | undefined, state: string][] = [
  ["before its commit on SQLite", undefined, "published"],
  ["before its commit on PostgreSQL", "TRIGGER hold BEFORE UPDATE ON media_head_item", "published"],
  [
    "in its commit on PostgreSQL",
    "CONSTRAINT TRIGGER hold AFTER UPDATE ON media_head_item DEFERRABLE INITIALLY DEFERRED",
    "unpublished",
  ],
];

for (const [step, trigger, state] of STEPS) {
  testsInFolder(...S3_STORE, ...(trigger === undefined ? [] : POSTGRES))(
    `media unpublish that is killed ${step} has named the object`,
    async (folder) => {
      const { prefix, environment } = bucketFor(folder);
      const database = trigger && await postgres().createDatabase();
      const DATABASE_URL = database
        ? postgres().urlOf(database)
        : `sqlite:${folder}/catalogue.sqlite`;
      const settings = { ...environment, DATABASE_URL };
      const run = (...args: string[]) => mediaHere(folder, args, settings);
      const { token } = JSON.parse((await run("publish", SAMPLE_MP3, "--json")).stdout);
      const release = database
        ? await postgres().hold(database, trigger ?? "")
        : lockCatalogue(folder);
      const child = mediaCommand(folder, ["unpublish", token], settings).spawn();
      const output = child.stdout.cancel();
      const object = `s3://${BUCKET}/${prefix}/bc/${MP3_DIGEST}`;
      let errors = "";
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        errors += text;
        if (errors.includes(object)) break;
      }
      assertEquals(
        errors,
        `media: unpublishing ${token}, whose content is ${object}
`,
      );
      if (database) await until("the commit to be held", () => isHeld(database));
      child.kill("SIGKILL");
      await Promise.all([child.status, output]);
      await release();

      if (database) await until("the end of the commit", async () => !await isHeld(database));
      const again = await run("unpublish", token);
      assertEquals(again.code, state === "published" ? 0 : 1, again.stderr);
      const unused = await run("verify");
      assertEquals(unused.stdout.split("  ")[0], `+ ${MP3_DIGEST}`);
    },
  );
}

/** Holds up every change of the catalogue until the returned function is called. */
function lockCatalogue(folder: string): () => void {
  const database = new DatabaseSync(`${folder}/catalogue.sqlite`);
  database.exec("BEGIN IMMEDIATE");
  return () => database.close();
}

/** Whether a transaction waits for a lock. */
async function isHeld(database: string): Promise<boolean> {
  const waiting = `SELECT 1 FROM pg_stat_activity
    WHERE datname = '${database}' AND wait_event_type = 'Lock'`;
  return (await postgres().query(waiting)).length > 0;
}

test("media import publishes objects in place, and restores an export of a bucket", async (folder) => {
  const prefix = newPrefix();
  const environment = store().environment(prefix);
  const run = (args: string[], more = {}) => mediaHere(folder, args, { ...environment, ...more });
  const content = await Deno.readFile(SAMPLE_MP4);
  const key = `shows/${"ü".repeat(300)}a.mp4`;
  await store().request("PUT", encodeURI(key), content);
  const location = `s3://${BUCKET}/${key}`;
  const sha256 = createHash("sha256").update(content).digest("hex");
  const validator = `"${createHash("md5").update(content).digest("hex")}"`;
  const facts = { location, sha256, validator, length: content.length, type: "video/mp4" };
  const [inPlace, stated] = [newToken(), newToken()];
  const lines = [
    { path: SAMPLE_MP3, name: "a.mp3" },
    { sha256: MP3_DIGEST, length: 26186, type: "audio/mpeg", token: newToken() },
    { location, token: inPlace, language: "de" },
    { ...facts, token: stated, name: "b.mp4" },
    { ...facts, token: newToken(), validator: '"x"' },
    { ...facts, token: newToken(), length: 5 },
    { location, token: newToken(), sha256: MP3_DIGEST },
    { location: `s3://${BUCKET}/none.mp4`, token: newToken() },
    { location: `s3://${BUCKET}/${prefix}/bc/${MP3_DIGEST}`, token: newToken() },
    { sha256: "ab".repeat(32), length: 5, type: "audio/mpeg", token: newToken() },
  ];
  await Deno.writeTextFile(
    `${folder}/in`,
    lines.map((line) => JSON.stringify(line)).join("\n"),
  );
  const first = await run(["import", `${folder}/in`]);
  assertEquals(first.stdout, "Added: 4; unchanged: 0; refused: 6\n");
  const expected = [
    /^media: line 5: .* is another object than was published$/m,
    /^media: line 6: .* is another object than was published$/m,
    /^media: line 7: ".*a.mp4" has the SHA-256 .*; expected bcd2/m,
    /^media: line 8: "s3:.*none.mp4" does not exist$/m,
    /^media: line 9: .* is content that was copied here$/m,
    /^media: line 10: .*content (ab){32} is missing/m,
  ];
  for (const pattern of expected) assertMatch(first.stderr, pattern);
  assertEquals(
    (await run(["import", `${folder}/in`])).stdout,
    "Added: 0; unchanged: 4; refused: 6\n",
  );

  const exported = (await run(["export"])).stdout;
  const listed = exported.trim().split("\n").map((line) => JSON.parse(line));
  for (const token of [inPlace, stated]) {
    const members = listed.find((one) => one.token === token);
    const { token: _, publishedAt: _at, name: _name, language: _language, ...rest } = members;
    assertEquals(rest, { state: "published", kind: "video", ...facts });
  }
  await Deno.writeTextFile(`${folder}/exported`, exported);
  // Moved as documented: the content is copied to another place, which nothing has claimed yet.
  const moved = newPrefix();
  const place = encodeURI(`${moved}/bc/${MP3_DIGEST}`);
  await store().request("PUT", place, await Deno.readFile(SAMPLE_MP3));
  const url = `sqlite:${folder}/other.sqlite`;
  const other = { ...store().environment(moved), DATABASE_URL: url };
  const { code, stderr } = await run(["import", `${folder}/exported`], other);
  assertEquals([code, stderr], [0, ""]);
  assertEquals((await run(["export"], other)).stdout, exported);
  await using server = await ServerProcess.start({ ...environment, ...other }, folder);
  for (const { token } of listed) {
    assertEquals((await requestRaw(server.port, "GET", `/media/${token}`)).status, 200);
  }
});

/** Uploads content in parts, which gives it another ETag than in one piece. */
async function uploadInParts(key: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
  const begun = await (await store().request("POST", `${key}?uploads=`)).text();
  const id = /<UploadId>(.+)<\/UploadId>/.exec(begun)?.[1];
  const { headers } = await store().request(
    "PUT",
    `${key}?partNumber=1&uploadId=${id}`,
    content,
  );
  const part = `<Part><PartNumber>1</PartNumber><ETag>${headers.get("etag")}</ETag></Part>`;
  const all = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`;
  await store().request("POST", `${key}?uploadId=${id}`, new TextEncoder().encode(all));
}

test("media import takes the new ETag of an object with the same bytes, and only then", async (folder) => {
  const { environment, run } = bucketFor(folder);
  const content = await Deno.readFile(SAMPLE_MP4);
  const [key, line] = ["shows/copied.mp4", `${folder}/line`];
  const location = `s3://${BUCKET}/${key}`;
  const put = (content: Uint8Array<ArrayBuffer>) => store().request("PUT", key, content);
  await put(content);
  const { token } = JSON.parse((await run("publish", location, "--json")).stdout);
  await Deno.writeTextFile(line, (await run("export")).stdout);
  await using server = await ServerProcess.start(environment, folder);
  const statuses = async () =>
    (await Promise.all(
      ["GET", "HEAD"].map((method) => requestRaw(server.port, method, `/media/${token}`)),
    )).map(({ status }) => status).join();
  const expect = (expected: string) =>
    until(`the server to answer ${expected}`, async () => await statuses() === expected);

  await uploadInParts(key, content);
  await expect("502,502");
  for (const options of [[], ["--content"]]) {
    const { code, stdout } = await run("verify", ...options);
    assertEquals(code, 1);
    const remedy = "was replaced; if only its ETag is new, import its line again";
    assertMatch(stdout, new RegExp(`^\\* ${token}  "${location}" .* ${remedy}\n`));
  }
  const renewed = "unchanged: 1 (1 of them with a new ETag); refused: 0\n";
  const dry = await run("import", line, "--dry-run");
  assertEquals([dry.stdout, dry.stderr], [`Dry run. Would be added: 0; ${renewed}`, ""]);
  assertEquals((await run("verify")).code, 1);
  assertEquals((await run("import", line)).stdout, `Added: 0; ${renewed}`);
  await expect("200,200");
  assertEquals((await run("verify", "--content")).code, 0);
  const same = "Added: 0; unchanged: 1; refused: 0\n";
  assertEquals((await run("import", line)).stdout, same);

  await put(content); // in one piece again
  const elsewhere = { ...environment, CONTENT: `${folder}/files` };
  assertEquals((await mediaHere(folder, ["import", line], elsewhere)).stdout, same);
  await Deno.writeTextFile(line, JSON.stringify({ token, location }));
  assertEquals((await run("import", line)).stdout, `Added: 0; ${renewed}`);
  assertEquals((await run("verify")).code, 0);

  const before = (await run("export")).stdout;
  await put(content.with(1_000, content[1_000] as number ^ 1));
  const refused = await run("import", line);
  assertEquals(refused.stdout, "Added: 0; unchanged: 0; refused: 1\n");
  assertMatch(refused.stderr, /^media: line 1: "s3:.*" has the SHA-256 \w+; expected \w+\n$/);
  assertEquals((await run("export")).stdout, before);
  await expect("502,502");
});

test("media import ends when the store is down, and blames no line", async (folder) => {
  const environment = store().environment(newPrefix());
  assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP3], environment)).code, 0);
  const lines = [
    { location: `s3://${BUCKET}/a.mp4`, token: newToken() },
    { sha256: MP3_DIGEST, length: 26186, type: "audio/mpeg", token: newToken() },
  ];
  for (const line of lines) {
    await Deno.writeTextFile(`${folder}/in`, JSON.stringify(line));
    const down = { ...environment, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${freePort()}` };
    const { code, stdout, stderr } = await mediaHere(folder, ["import", `${folder}/in`], down);
    assertEquals(code, 1);
    assertMatch(stdout, /^Added: 0; unchanged: 0; refused: 0; stopped /);
    assert(!stderr.includes("line 1"), stderr);
    assertMatch(stderr, /^media: bucket: /);
  }
});

test("a server reads and lists only, and no command deletes an object", async (folder) => {
  await store().request("PUT", "?acl", undefined, { "x-amz-acl": "public-read" });
  const methods = new Set<string>();
  await using relay = new Relay(store().port);
  relay.onSent = (text) => {
    for (const [, method = ""] of text.matchAll(/^([A-Z]+) \/media\S* HTTP\/1\.1\r$/gm)) {
      methods.add(method);
    }
  };
  const publisher = {
    ...store().environment(newPrefix()),
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${relay.port}`,
  };
  const reader = { ...publisher, AWS_ACCESS_KEY_ID: READER_KEY };
  const run = (environment: Record<string, string>, ...args: string[]) =>
    mediaHere(folder, args, environment);

  const { token } = JSON.parse((await run(publisher, "publish", SAMPLE_MP3, "--json")).stdout);
  assertEquals((await run(publisher, "publish", SAMPLE_MP3, "--again")).code, 0);
  await using server = await ServerProcess.start(reader, folder);
  assertEquals((await requestRaw(server.port, "GET", `/media/${token}`)).status, 200);
  assertEquals((await run(reader, "verify", "--content")).code, 0);
  const refused = await run(reader, "publish", SAMPLE_MP4);
  assertEquals(refused.code, 1);
  assertMatch(refused.stderr, /rejects content \w+: the store answers 403 \(AccessDenied\)\n$/);

  const tombstone = { token, state: "unpublished", kind: "audio" };
  await Deno.writeTextFile(`${folder}/in`, JSON.stringify(tombstone));
  const imported = await run(reader, "import", `${folder}/in`);
  assertEquals(imported.stdout, "Added: 1 (1 of them unpublished); unchanged: 0; refused: 0\n");
  assertMatch(
    imported.stderr,
    /^media: unpublishing .* s3:.*\nmedia: another item uses s3:.*\n$/,
  );
  const [other = ""] = /\S{36}(?= +audio +published)/.exec((await run(reader, "list")).stdout) ??
    [];
  assertEquals((await run(reader, "unpublish", other)).code, 0);
  assertEquals([...methods].sort(), ["GET", "PUT"]);
});
