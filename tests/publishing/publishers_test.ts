/** Several publishers at once, and publishers that are killed, on every engine and place. */

import { assert, assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { type Verification, verify } from "../../lib/publishing/verify.ts";
import { readConfig } from "../../lib/server/config.ts";
import { openStorage } from "../../lib/storage/engines/open_storage.ts";
import type { PublishedItem } from "../../lib/storage/item.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { newPrefix } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, makeCatalogue, media, mediaCommand } from "../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { type Need, needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { BUCKET, S3_STORE, S3Store } from "../support/s3_store.ts";
import { storageIn } from "../support/server.ts";
import { wav } from "../support/wav.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const store = shared(S3_STORE, () => S3Store.start());

type Environment = Record<string, string>;

/** Storage as one machine has it, and as many have it. */
const PLACES: [name: string, needs: readonly Need[], settings: () => Promise<Environment>][] = [
  ["SQLite and a folder", ["processes"], () => Promise.resolve({})],
  ["PostgreSQL and a bucket", [...POSTGRES, ...S3_STORE], async () => ({
    DATABASE_URL: postgres().urlOf(await postgres().createDatabase()),
    ...store().environment(newPrefix()),
  })],
];

/**
 * Reads all content that is published, which must be as it was.
 *
 * @returns The items, and the digests of content that no item uses.
 */
async function stateOf(folder: string, environment: Environment) {
  const all: Environment = { ...storageIn(folder), ...environment };
  const { media: storage, close } = await openStorage(
    readConfig((name) => all[name], "command"),
    {},
  );
  try {
    const items: PublishedItem[] = [];
    const unused: string[] = [];
    const onVerified = (found: Verification) => {
      if ("unused" in found) unused.push(found.unused);
      else assertEquals(found.outcome.state, "same");
      if ("entry" in found && found.entry.state === "published") items.push(found.entry.item);
      return Promise.resolve();
    };
    const { signal } = new AbortController();
    await verify(storage, { withContent: true, signal, onVerified });
    return { items, unused };
  } finally {
    await close();
  }
}

/** Makes a folder of sounds, of which two have the same content. */
async function makeSounds(folder: string, count: number, first: number): Promise<string[]> {
  await Deno.mkdir(folder);
  return await Promise.all(Array.from({ length: count }, async (_, index) => {
    const path = `${folder}/${index}.wav`;
    await Deno.writeFile(path, wav(first + Math.max(1, index), 20_000));
    return path;
  }));
}

const parseLines = (text: string) =>
  text.split("\n").filter((line) => line.endsWith("}")).map((line) => JSON.parse(line));

const PUBLISHERS = 3;

/** FILES=357 makes it a long run. */
const filesWanted = () => Number(Deno.env.get("FILES") ?? 12);

async function publishAtOnce(folder: string, environment: Environment): Promise<void> {
  const sounds = await makeSounds(`${folder}/shows`, filesWanted(), 0);
  const sources = [`${folder}/shows`];
  for (const path of environment["CONTENT"] === undefined ? [] : sounds.slice(0, 4)) {
    const key = `own/${crypto.randomUUID()}.wav`;
    await store().request("PUT", key, await Deno.readFile(path));
    sources.push(`s3://${BUCKET}/${key}`);
  }
  const count = sounds.length + sources.length - 1;
  const publish = () => media(folder, ["publish", ...sources, "--json"], environment);
  const results = await Promise.all(Array.from({ length: PUBLISHERS }, publish));
  const reported = results.flatMap(({ code, stdout, stderr }) => {
    assertEquals(code, 0, stderr);
    return parseLines(stdout);
  });
  assertEquals(reported.length, PUBLISHERS * count);
  assertEquals(reported.filter(({ outcome }) => outcome === "published").length, count);
  assertEquals(new Set(reported.map(({ token }) => token)).size, count);
  const { items, unused } = await stateOf(folder, environment);
  assertEquals([items.length, unused], [count, []]);
}

/** KILLS=200 makes it a long run. */
const killsWanted = () => Number(Deno.env.get("KILLS") ?? 3);

async function killCommands(folder: string, environment: Environment): Promise<void> {
  await makeCatalogue(folder, environment);
  const kills = killsWanted();
  /** Milliseconds that each command took last. */
  const took = { publish: 0, import: 0, unpublish: 0 };
  let items: PublishedItem[] = [];
  let [killed, run] = [0, 0];
  for (; killed < kills; run++) {
    assert(run < 8 * kills, `only ${killed} of ${run} were killed`);
    const name = (["publish", "import", "unpublish"] as const)[run % 3] ?? "publish";
    const victim = name === "unpublish" ? items[run % items.length]?.token : undefined;
    let args = ["unpublish", victim ?? "", "--json"];
    if (victim === undefined) {
      const sounds = await makeSounds(`${folder}/${run}`, 5, run * 10);
      const lines = sounds.map((path) => `${JSON.stringify({ path })}\n`).join("");
      await Deno.writeTextFile(`${folder}/list`, lines);
      args = name === "import"
        ? [name, `${folder}/list`]
        : ["publish", `${folder}/${run}`, "--json"];
    }
    let [previous, tries] = [items, 0];
    for (let isKilled = true; isKilled; tries++) { // then again what was killed
      const child = mediaCommand(folder, args, environment).spawn();
      const output = Promise.all(
        [child.stdout, child.stderr].map((text) => new Response(text).text()),
      );
      const started = performance.now();
      const isSpared = tries > 0 || run < 3; // the first tell how long each takes
      const delay = isSpared ? 2 ** 30 : took[name] * (0.3 + 0.8 * Math.random());
      const kill = () => {
        try {
          child.kill("SIGKILL");
        } catch (error) {
          assertInstanceOf(error, TypeError); // it has just ended by itself
        }
      };
      const timer = setTimeout(kill, delay);
      const { signal, code } = await child.status;
      clearTimeout(timer);
      isKilled = signal === "SIGKILL";
      if (isKilled) killed++;
      else took[name] = performance.now() - started;
      const [stdout = "", stderr = ""] = await output;
      // What an earlier try has done may be refused.
      assert(isKilled || code === 0 || tries > 0 && victim !== undefined, stderr);

      const state = await stateOf(folder, environment);
      items = state.items;
      // Publishing removes from a folder what was left behind. A bucket keeps it.
      const isCleared = !isKilled && victim === undefined && environment["CONTENT"] === undefined;
      if (isCleared) assertEquals(state.unused, []);
      const tokens = new Set<string>(items.map(({ token }) => token));
      for (const { token, state } of parseLines(stdout)) {
        if (token !== undefined) assertEquals(tokens.has(token), state === "published");
      }
      for (const { token } of previous) assert(tokens.has(token) || token === victim);
      if (victim !== undefined && environment["CONTENT"] !== undefined && !tokens.has(victim)) {
        assert(tries > 0 || stderr.includes(" whose content is s3://"), "the object is named");
      }
      const sources = items.map(({ digest, name }) => `${digest} ${name}`);
      assertEquals(new Set(sources).size, sources.length, "nothing is published twice");
      previous = items;
    }
  }
  console.log(`${killed} of ${run} commands were killed; ${items.length} items are complete`);
}

for (const [place, needs, settings] of PLACES) {
  const test = (what: string, body: typeof publishAtOnce) =>
    needing(...needs)(
      `${what} on ${place}`,
      () => inFolder(async (folder) => await body(folder, await settings())),
    );
  test("commands that publish a folder at once publish each file once,", publishAtOnce);
  test(
    "commands that are killed at any moment lose nothing and publish nothing twice",
    killCommands,
  );
}

type LocalSubject = Awaited<ReturnType<typeof openLocal>>;

const [onFiles, asProcess] = [needing("files"), needing("processes")];
const onPostgres = needing(...POSTGRES);

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
    "between content and entry, or between tombstone and removal",
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
      const trigger =
        "CONSTRAINT TRIGGER hold AFTER INSERT ON media_head_item DEFERRABLE INITIALLY DEFERRED";
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
