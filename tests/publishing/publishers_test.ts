/** Several publishers at once, and publishers that are killed, on every engine and place. */

import { assert, assertEquals } from "@std/assert";
import { type Verification, verify } from "../../lib/publishing/verify.ts";
import { readConfig } from "../../lib/server/config.ts";
import { openStorage } from "../../lib/storage/media/open_storage.ts";
import type { PublishedItem } from "../../lib/storage/item.ts";
import { newPrefix } from "../support/bucket_storage.ts";
import { inFolder, makeCatalogue, media, mediaCommand } from "../support/media_cli.ts";
import { type Need, needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { BUCKET, S3_STORE, S3Store } from "../support/s3_store.ts";
import { storageIn } from "../support/server.ts";
import { wav } from "../support/wav.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const store = shared(S3_STORE, () => S3Store.start());

type Environment = Record<string, string>;

const ENGINES: [name: string, needs: readonly Need[], settings: () => Promise<Environment>][] = [
  ["SQLite", ["processes"], () => Promise.resolve({})],
  ["PostgreSQL", POSTGRES, async () => ({
    DATABASE_URL: postgres().urlOf(await postgres().createDatabase()),
  })],
];

const PLACES: [name: string, needs: readonly Need[], settings: () => Environment][] = [
  ["a folder", [], () => ({})],
  ["a bucket", S3_STORE, () => store().environment(newPrefix())],
];

/**
 * Reads all content that is published, which must be as it was.
 *
 * @returns The items, and the digests of content that no item uses.
 */
async function stateOf(folder: string, environment: Environment) {
  const all: Environment = { ...storageIn(folder), ...environment };
  const storage = await openStorage(readConfig((name) => all[name], "command"), {});
  try {
    const items: PublishedItem[] = [];
    const unused: string[] = [];
    const report = (found: Verification) => {
      if ("unused" in found) unused.push(found.unused);
      else assertEquals(found.outcome.state, "same");
      if ("entry" in found && found.entry.state === "published") items.push(found.entry.item);
      return Promise.resolve();
    };
    await verify(storage, { withContent: true, signal: new AbortController().signal, report });
    return { items, unused };
  } finally {
    await storage.close();
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
      const timer = setTimeout(() => child.kill("SIGKILL"), delay);
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

for (const [engine, needs, databaseOf] of ENGINES) {
  for (const [place, more, contentOf] of PLACES) {
    const test = (what: string, body: typeof publishAtOnce) =>
      needing(...needs, ...more)(
        `${what} on ${engine} and ${place}`,
        () =>
          inFolder(async (folder) => await body(folder, { ...await databaseOf(), ...contentOf() })),
      );
    test("commands that publish a folder at once publish each file once,", publishAtOnce);
    test(
      "commands that are killed at any moment lose nothing and publish nothing twice",
      killCommands,
    );
  }
}
