import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openIn, openLocal } from "../support/local_storage.ts";
import { inFolder, media, mediaCommand } from "../support/media_cli.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { type Need, needing, shared } from "../support/permissions.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { wav } from "../support/wav.ts";

const [onFiles, asProcess] = [needing("files"), needing("processes")];
const onPostgres = needing(...POSTGRES);
const postgres = shared(POSTGRES, () => PostgresServer.start());

/** KILLS=200 makes it a long run. */
const killsWanted = () => Number(Deno.env.get("KILLS") ?? 8);

/** The database of a test. */
interface Place {
  readonly url: string;
  /** The same, with access to the files of the content. */
  readonly folder: string;
  /** Waits until nothing of a killed process is in flight, and runs the engine's own checks. */
  readonly check: () => Promise<void>;
}

/** Each engine, with a function that makes a database. */
const ENGINES: readonly {
  readonly name: string;
  readonly needs: readonly Need[];
  readonly placeIn: (folder: string) => Promise<Place>;
}[] = [
  {
    name: "SQLite",
    needs: ["processes"],
    placeIn: (folder) => {
      const check = () => {
        using database = new DatabaseSync(`${folder}/catalogue.sqlite`);
        const result = { ...database.prepare("PRAGMA integrity_check").get() };
        assertEquals(result, { integrity_check: "ok" });
        return Promise.resolve();
      };
      return Promise.resolve({ url: `sqlite:${folder}/catalogue.sqlite`, folder, check });
    },
  },
  {
    name: "PostgreSQL",
    needs: POSTGRES,
    placeIn: async (folder) => {
      const database = await postgres().createDatabase();
      // A transaction outlives the process that sent its COMMIT, and keeps its locks until then.
      const check = async () => {
        await postgres().query("BEGIN; LOCK TABLE item IN SHARE MODE; COMMIT", database);
      };
      return { url: postgres().urlOf(database), folder, check };
    },
  },
];

const MEGABYTE = 1_000_000;

/** Opens the storage of a place. */
const openStorage = ({ url, folder }: Pick<Place, "url" | "folder">) =>
  openIn(folder, url.startsWith("postgres") ? openEngine(url) : undefined);

for (const { name, needs, placeIn } of ENGINES) {
  const test = needing(...needs);
  test(
    `media publish and unpublish on ${name}, killed at any moment, leave complete items or none, and lose none`,
    () => inFolder(async (folder) => killCommands(await placeIn(folder))),
  );
}

async function killCommands(place: Place): Promise<void> {
  const { url: DATABASE_URL, folder } = place;
  const file = `${folder}/1.wav`;
  await Deno.writeFile(file, wav(1, MEGABYTE));
  const first = await media(folder, ["publish", file, "--json"], { DATABASE_URL });
  // Milliseconds, from the first change of a file, after which about half of the runs are over. It
  // adapts, so that kills hit every step on machines of any speed.
  const patience = { publish: 50, unpublish: 20 };
  assertEquals(first.code, 0, first.stderr);
  let published: Token[] = [JSON.parse(first.stdout).token];
  await using server = await ServerProcess.start({ DATABASE_URL }, folder);

  const kills = killsWanted();
  let [killed, effective, run] = [0, 0, 0];
  for (; killed < kills; run++) {
    assert(run < 8 * kills, `only ${killed} of ${run} were killed`);
    const victim = run % 3 === 2 ? published[run % published.length] : undefined;
    const name = victim === undefined ? "publish" : "unpublish";
    // Half of the items have content that others may have already.
    await Deno.writeFile(file, wav(run % 3 === 0 ? 2 + run : 1, MEGABYTE));
    const args = victim === undefined
      ? [name, file, "--again", "--json"]
      : [name, victim, "--json"];
    const files = Deno.watchFs(`${folder}/files`);
    const child = mediaCommand(folder, args, { DATABASE_URL }).spawn();
    const output = new Response(child.stdout).text();
    const errors = new Response(child.stderr).text();
    const killing = killAfterChange(child, files, patience[name] * 2 * Math.random());
    const { signal, code } = await child.status;
    files.close();
    await killing;
    const reported = code === 0 ? JSON.parse(await output) : undefined;
    await output;
    const complaint = await errors;
    if (signal === "SIGKILL") killed++;
    else assertEquals(code, 0, complaint);
    patience[name] *= signal === "SIGKILL" ? 1.2 : 1 / 1.2;

    const present = await verify(place);
    const added = present.filter((token) => !published.includes(token));
    const gone = published.filter((token) => !present.includes(token));
    // A killed process may or may not have done it.
    assert(victim === undefined ? gone.length === 0 : added.length === 0);
    assert(victim === undefined ? added.length <= 1 : gone.every((token) => token === victim));
    if (reported !== undefined) assertEquals([...added, ...gone], [victim ?? reported.token]);
    else effective += added.length + gone.length;
    published = present;
    for (const token of [...gone, ...added, ...published.slice(0, 1)]) {
      await untilShown(server, token, gone.includes(token) ? 410 : 200);
    }
  }

  assertEquals((await media(folder, ["publish", SAMPLE_MP3], { DATABASE_URL })).code, 0);
  const items = await verify(place);
  assertEquals(await strays(place), []);
  console.log(
    `${killed} of ${run} runs were killed, ${effective} of them after their commit; ` +
      `${items.length} items are published and complete`,
  );
  assertEquals((await server.stop()).log.filter(({ event }) => event === "error"), []);
}

/** Kills a process some milliseconds after its first change of a file. */
async function killAfterChange(
  child: Deno.ChildProcess,
  files: Deno.FsWatcher,
  milliseconds: number,
): Promise<void> {
  for await (const { kind } of files) {
    if (kind === "access") continue;
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    return kill(child);
  }
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // it has already ended
  }
}

/** Waits until a server shows a change of an item, sooner than by forgetting what it was. */
async function untilShown({ port }: ServerProcess, token: Token, expected: number): Promise<void> {
  let status = 0;
  for (let tries = 0; status !== expected; tries++) {
    assert(tries < 80, `${token} is ${status} instead of ${expected}`);
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 50));
    ({ status } = await requestRaw(port, "HEAD", `/media/${token}`));
  }
}

/** Checks the database, and every published item against its content; returns the tokens. */
async function verify({ url, folder, check }: Place): Promise<Token[]> {
  await check();
  const storage = await openStorage({ url, folder });
  const tokens: Token[] = [];
  for await (const [token, entry] of storage.catalogue.list()) {
    if (entry.state !== "published") continue;
    const content = await new Response(await storage.open(entry.item)).bytes();
    assertEquals(createHash("sha256").update(content).digest("hex"), entry.item.digest);
    tokens.push(token);
  }
  await storage.close();
  return tokens;
}

/** Files that no published item uses. */
async function strays({ url, folder }: Pick<Place, "url" | "folder">): Promise<string[]> {
  const storage = await openStorage({ url, folder });
  const used = new Set<string>();
  for await (const [, entry] of storage.catalogue.list()) {
    if (entry.state === "published") used.add(entry.item.digest);
  }
  await storage.close();
  const names = [];
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/files`)) {
    if (!isDirectory) continue;
    for await (const file of Deno.readDir(`${folder}/files/${name}`)) {
      if (!used.has(file.name)) names.push(`${name}/${file.name}`);
    }
  }
  return names;
}

const CONTENT = new TextEncoder().encode("content");

const DIGEST = createHash("sha256").update(CONTENT).digest("hex");

const straysOf = ({ folder }: { readonly folder: string }) =>
  strays({ url: `sqlite:${folder}/catalogue.sqlite`, folder });

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
        if (isKilled) kill(child);
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
      const place = { url: postgres().urlOf(database), folder, check: () => Promise.resolve() };
      await Deno.writeFile(`${folder}/1.wav`, wav(1, MEGABYTE));
      const publish = (file: string) =>
        mediaCommand(folder, ["publish", file], { DATABASE_URL: place.url }).spawn();
      await (await openStorage(place)).close(); // creates the tables
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
      const first = publish(`${folder}/1.wav`);
      await waiting(1);
      kill(first);
      await first.output();
      const second = publish(SAMPLE_MP3);
      await waiting(2);
      await release();
      assertEquals((await second.output()).code, 0);
      assertEquals((await verify(place)).length, 2);
    });
  },
);
