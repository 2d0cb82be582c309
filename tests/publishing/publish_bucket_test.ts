/** Publishing into a bucket, and publishing objects that are already there. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { publishFile } from "../../lib/publishing/publish.ts";
import { InterruptedError } from "../../lib/cli/interruption.ts";
import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import type { Step } from "../../lib/storage/content/content_store.ts";
import { StorageError } from "../../lib/storage/errors.ts";
import { newPrefix, openBucket, settingsOf } from "../support/bucket_storage.ts";
import { inFolder, media, mediaCommand } from "../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { BUCKET, S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const store = shared(S3_STORE, () => S3Store.start());
const postgres = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...S3_STORE);

const MP3_DIGEST = "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa";

/** Returns how to run commands on storage in a folder and under a new prefix of the bucket. */
function bucketFor(folder: string) {
  const prefix = newPrefix();
  const environment = store().environment(prefix);
  const run = (...args: string[]) => media(folder, args, environment);
  return { prefix, environment, run };
}

test("media publish s3://… publishes an object in place", () =>
  inFolder(async (folder) => {
    const { prefix, environment, run } = bucketFor(folder);
    const key = "shows/2027/Ü (1)+a.mp4";
    const [location, path] = [`s3://${BUCKET}/${key}`, "shows/2027/%C3%9C%20%281%29%2Ba.mp4"];
    const content = await Deno.readFile(SAMPLE_MP4);
    await store().request("PUT", path, content);
    const published = await run("publish", location, "--language", "de", "--json");
    assertEquals([published.code, published.stderr], [0, ""]);
    const { publishedAt: _, urls: _urls, source, outcome, token, ...record } = JSON.parse(
      published.stdout,
    );
    assertEquals([source, outcome], [location, "published"]);
    assertEquals(record, {
      state: "published",
      ...{ kind: "video", type: "video/mp4", length: content.length, language: "de" },
      sha256: createHash("sha256").update(content).digest("hex"),
      ...{ name: "Ü (1)+a.mp4", location },
      validator: `"${createHash("md5").update(content).digest("hex")}"`,
    });
    assertEquals(await store().keys(prefix), [`${prefix}/media-head`]); // nothing is copied
    const skipped = await run("publish", location);
    assertMatch(skipped.stdout, new RegExp(`^Skipped: already published as video ${token}\n`));
    const again = await run("publish", location, "--again");
    assertMatch(
      again.stdout,
      /\n {2}in place at s3:\/\/media\/shows\/2027\/Ü \(1\)\+a\.mp4\n$/,
    );

    await using server = await ServerProcess.start(environment, folder);
    const whole = await requestRaw(server.port, "GET", `/media/${token}`);
    assertEquals([whole.status, whole.content], [200, content]);
    assertEquals(field(whole, "etag"), `"${record.sha256}"`);
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
  }));

test("media publish refuses objects that cannot be published, with one line each", () =>
  inFolder(async (folder) => {
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
      ["s3://media/none.mp3", "s3://media/none.mp3 does not exist"],
      ["s3://other/a.mp3", "s3://other/a.mp3 is not an object in the bucket in CONTENT"],
      ["s3://media/", "s3://media/ is not an object in the bucket in CONTENT"],
      ["s3://media/a/../b", "s3://media/a/../b is not an object in the bucket in CONTENT"],
      ["s3://media/empty.mp3", "s3://media/empty.mp3 is empty"],
      [
        "s3://media/packed.mp3",
        "s3://media/packed.mp3 is stored with Content-Encoding: gzip",
      ],
      [
        "s3://media/text.mp3",
        '"s3://media/text.mp3" has an unknown format; state its media type with --type',
      ],
      ...[own, `${prefix}/media-head`].map((key): [string, string] => [
        `s3://media/${key}`,
        `s3://media/${key} is content that was copied here`,
      ]),
      [
        large,
        `"${large}" has 5368709121 bytes; a bucket accepts at most 5368709120 in one PUT`,
      ],
    ];
    const { code, stderr } = await run("publish", ...refused.map(([source]) => source));
    const reasons = refused.map(([, reason]) => `refused    ${reason}\n`);
    assertEquals([code, stderr], [1, reasons.join("")]);
    const local = await media(folder, ["publish", "s3://media/text.mp3"], { CONTENT: folder });
    assertEquals(local.code, 1);
    assertMatch(local.stderr, /^media: files: .* is not the folder with the content|CONTENT is no/);
    assertEquals((await run("list")).stdout.trimEnd().split("\n").length, 1);
    assertEquals(await store().keys(prefix), [own, `${prefix}/media-head`]);
  }));

test("media says which bucket cannot be used, and what the store answered", () =>
  inFolder(async (folder) => {
    const { environment } = bucketFor(folder);
    const rows: [changes: Record<string, string>, reason: RegExp][] = [
      [
        { CONTENT: "s3://missing/a" },
        /"s3:\/\/missing\/a" \(CONTENT\) cannot be read: .* 404 \(NoSuchBucket\)$/,
      ],
      [
        { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${freePort()}` },
        /the store cannot be reached \(.*refused.*\)$/,
      ],
    ];
    const answers: [changes: Partial<BucketSettings>, reason: string][] = [
      [{ secretAccessKey: "wrong" }, "403 (SignatureDoesNotMatch)"],
      [{ accessKeyId: "test:other" }, "403 ("],
      [{ region: "eu-west-1" }, "400 (AuthorizationHeaderMalformed)"],
    ];
    for (const [changes, reason] of answers) {
      const content = new BucketContent({ ...settingsOf(store(), newPrefix()), ...changes });
      const message = `cannot be read: the store answers ${reason}`;
      await assertRejects(() => content.id(), StorageError, message);
      await content.close();
    }
    for (const [changes, reason] of rows) {
      const all = { ...environment, ...changes };
      const { code, stderr } = await media(folder, ["publish", SAMPLE_MP3], all);
      assertEquals(code, 1, stderr);
      assertMatch(stderr, /^media: bucket: [^\n]*\n$/);
      assertMatch(stderr.trimEnd(), reason);
      const started = await assertRejects(() => ServerProcess.start(all, folder), Error);
      assertMatch(started.message.trimEnd(), reason);
    }
  }));

test("publishFile() refuses a file that changes while it is published, and leaves nothing behind", () =>
  inFolder(async (folder) => {
    await using subject = await openBucket(store());
    const path = `${folder}/a.mp3`;
    const original = await Deno.readFile(SAMPLE_MP3);
    const changed = original.map((byte, index) => index === 20_000 ? byte ^ 1 : byte);
    for (const content of [changed, original.subarray(0, -1)]) {
      await Deno.writeFile(path, original);
      const watch = (chunks: AsyncIterable<Uint8Array>, { step }: { step: Step }) => {
        if (step === "sending") Deno.writeFileSync(path, content);
        return chunks;
      };
      const publish = () => publishFile(subject.storage, path, { watch });
      const { message } = await assertRejects(publish, Error);
      assertEquals(message, `"${path}" changed while it was read`);
      assertEquals(await subject.digests(), []);
    }
    const steps: Step[] = [];
    const watch = (chunks: AsyncIterable<Uint8Array>, { step }: { step: Step }) => {
      steps.push(step);
      return chunks;
    };
    await publishFile(subject.storage, path, { watch });
    await publishFile(subject.storage, path, { watch });
    assertEquals(steps, ["hashing", "sending", "hashing"]); // the second time, it is already there
    assertEquals((await Array.fromAsync(subject.storage.catalogue.list())).length, 2);
  }));

test("publishFile() leaves nothing behind when aborted at any step", () =>
  inFolder(async (folder) => {
    await using subject = await openBucket(store());
    const path = `${folder}/a.wav`;
    const content = new Uint8Array(3_000_000);
    content.set(new TextEncoder().encode("RIFF\\x24\\x00\\x00\\x00WAVEfmt "));
    await Deno.writeFile(path, content);
    for (const step of ["hashing", "sending"]) {
      const controller = new AbortController();
      const watch = async function* (chunks: AsyncIterable<Uint8Array>, now: { step: Step }) {
        for await (const chunk of chunks) {
          yield chunk;
          if (now.step === step) controller.abort(new InterruptedError("SIGINT"));
        }
      };
      const { signal } = controller;
      await assertRejects(
        () => publishFile(subject.storage, path, { watch, signal, type: "audio/wav" }),
        InterruptedError,
      );
      assertEquals(await subject.digests(), [], step);
    }
    assert(await subject.storage.catalogue.isEmpty());
  }));

/** The steps at which a takedown is killed, and the trigger that holds it there on PostgreSQL. */
const STEPS: [step: string, trigger: string | undefined, state: string][] = [
  ["before its commit on SQLite", undefined, "published"],
  ["before its commit on PostgreSQL", "TRIGGER hold BEFORE UPDATE ON item", "published"],
  [
    "in its commit on PostgreSQL",
    "CONSTRAINT TRIGGER hold AFTER UPDATE ON item DEFERRABLE INITIALLY DEFERRED",
    "unpublished",
  ],
];

for (const [step, trigger, state] of STEPS) {
  needing(...S3_STORE, ...(trigger === undefined ? [] : POSTGRES))(
    `media unpublish that is killed ${step} has named the object`,
    () =>
      inFolder(async (folder) => {
        const { prefix, environment } = bucketFor(folder);
        const database = trigger && await postgres().createDatabase();
        const DATABASE_URL = database
          ? postgres().urlOf(database)
          : `sqlite:${folder}/catalogue.sqlite`;
        const settings = { ...environment, DATABASE_URL };
        const run = (...args: string[]) => media(folder, args, settings);
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
      }),
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
