import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { newToken, type Token } from "../../lib/storage/token.ts";
import { description } from "../storage/storage_suite.ts";
import { callsIn, openIn, openLocal } from "../support/local_storage.ts";
import { media, mediaCommand } from "../support/media_cli.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

const [onFiles, asProcess] = [needing("files"), needing("processes")];

/** KILLS=200 makes a long run of it. */
const killsWanted = () => Number(Deno.env.get("KILLS") ?? 24);

/** A WAV file of a few megabytes; the same seed makes the same bytes. */
function wav(seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(3_000_000 + seed);
  for (let index = 0; index < bytes.length; index++) bytes[index] = (index * seed) >> 3;
  bytes.set(new TextEncoder().encode("RIFF\x24\x00\x00\x00WAVEfmt "));
  return bytes;
}

asProcess(
  "media publish and unpublish, killed at any moment, leave whole items or none, and lose none",
  async () => {
    const folder = await Deno.makeTempDir({ prefix: "media-head-" });
    for (const seed of [1, 2, 3]) await Deno.writeFile(`${folder}/${seed}.wav`, wav(seed));
    const started = performance.now();
    const first = await media(folder, ["publish", `${folder}/1.wav`, "--json"]);
    // Milliseconds after which about half of the runs are over. It follows what happens, so that
    // kills fall on every step of a run, on machines of any speed.
    let patience = performance.now() - started;
    assertEquals(first.code, 0);
    let published: Token[] = [JSON.parse(first.stdout).token];
    await using server = await ServerProcess.start({ CACHE_TTL: "3600" }, folder);

    const kills = killsWanted();
    let killed = 0;
    for (let run = 0; run < kills; run++) {
      const victim = run % 4 === 3 ? published[run % published.length] : undefined;
      const args = victim !== undefined
        ? ["unpublish", victim, "--json"]
        : ["publish", `${folder}/${run % 3 + 1}.wav`, "--json"];
      const child = mediaCommand(folder, args).spawn();
      const output = new Response(child.stdout).text();
      const errors = child.stderr.cancel();
      const timer = setTimeout(() => kill(child), patience * (0.8 + 0.4 * Math.random()));
      const { signal, code } = await child.status;
      clearTimeout(timer);
      await errors;
      const reported = code === 0 ? JSON.parse(await output) : undefined;
      await output;
      if (signal === "SIGKILL") killed++;
      else assertEquals(code, 0);
      patience *= signal === "SIGKILL" ? 1.1 : 0.9;

      const present = await verify(folder);
      const added = present.filter((token) => !published.includes(token));
      const gone = published.filter((token) => !present.includes(token));
      // Whoever was killed may or may not have done it.
      assert(victim === undefined ? gone.length === 0 : added.length === 0);
      assert(victim === undefined ? added.length <= 1 : gone.every((token) => token === victim));
      if (reported !== undefined) assertEquals([...added, ...gone], [victim ?? reported.token]);
      published = present;
      await new Promise((resolve) => setTimeout(resolve, 100)); // until the server shows it
      const asked = [...gone, ...added, ...published.slice(0, 1)];
      for (const token of asked) {
        const { status } = await requestRaw(server.port, "HEAD", `/media/${token}`);
        assertEquals(status, gone.includes(token) ? 410 : 200);
      }
    }

    assertEquals((await media(folder, ["publish", SAMPLE_MP3])).code, 0);
    const items = await verify(folder);
    assertEquals(await strays(folder), []);
    console.log(
      `${killed} of ${kills} runs were killed; ${items.length} items are published and whole`,
    );
    assert(killed > kills / 5, `only ${killed} were killed, too few to show anything`);
    assertEquals((await server.stop()).log.filter(({ event }) => event === "error"), []);
    await Deno.remove(folder, { recursive: true });
  },
);

asProcess(
  "servers that are killed lose no count that was flushed, and harm nobody else's",
  async () => {
    await using subject = await openLocal();
    const { folder } = subject;
    const { token } = await subject.publish(description(), CONTENT);
    await subject.storage.close();
    await using survivor = await ServerProcess.start({}, folder);
    const sent = { survivor: 0, victim: 0 };
    const call = async (name: keyof typeof sent, { port }: ServerProcess) => {
      const fields = { "User-Agent": `${name}/1.0` };
      const response = await requestRaw(port, "HEAD", `/audio/${token}`, fields);
      assertEquals(response.status, 200);
      sent[name]++;
    };

    let flushed = 0;
    const kills = killsWanted() / 4;
    for (let run = 0; run < kills; run++) {
      await using victim = await ServerProcess.start({}, folder);
      // Most come at the first flush, which is half a second after the start.
      const end = performance.now() + (run % 4 === 0 ? 1_200 * Math.random() : 380 + run % 8 * 20);
      while (performance.now() < end) {
        await call("victim", victim);
        await call("survivor", survivor);
      }
      await victim.stop("SIGKILL");
      const kept = await callsIn(folder, "victim");
      assert(kept >= flushed && kept <= sent.victim, `${kept} of ${sent.victim}, after ${flushed}`);
      flushed = kept;
    }
    await call("survivor", survivor);
    const { log } = await survivor.stop();
    assertEquals(log.filter(({ event }) => event === "error"), []);
    assertEquals(await callsIn(folder, "survivor"), sent.survivor);
    console.log(`${kills} servers were killed; ${flushed} of their ${sent.victim} calls are kept`);
    assert(flushed > 0);
  },
);

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // it has ended already
  }
}

/** Checks both databases, and every published item against its content; returns the tokens. */
async function verify(folder: string): Promise<Token[]> {
  for (const file of ["catalogue.sqlite", "catalogue.sqlite-ledger"]) {
    using database = new DatabaseSync(`${folder}/${file}`);
    const check = { ...database.prepare("PRAGMA integrity_check").get() };
    assertEquals(check, { integrity_check: "ok" });
  }
  const storage = await openIn(folder);
  const tokens: Token[] = [];
  for await (const [token, entry] of storage.list()) {
    if (entry.state !== "published") continue;
    const content = await new Response(await storage.open(entry.item)).bytes();
    assertEquals(createHash("sha256").update(content).digest("hex"), entry.item.digest);
    tokens.push(token);
  }
  await storage.close();
  return tokens;
}

/** Files that no published item uses. */
async function strays(folder: string): Promise<string[]> {
  const storage = await openIn(folder);
  const used = new Set<string>();
  for await (const [, entry] of storage.list()) {
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

/** What a kill leaves at each point, put there by hand. */
const LEFTOVERS: [when: string, leave: (files: string) => Promise<void>][] = [
  ["while content was being staged", async (files) => {
    await Deno.mkdir(`${files}/staged`, { recursive: true });
    await Deno.writeFile(`${files}/staged/${crypto.randomUUID()}`, CONTENT);
  }],
  ["before content was in its place", async (files) => {
    await Deno.mkdir(`${files}/unsettled`, { recursive: true });
    await Deno.writeFile(`${files}/unsettled/${DIGEST}`, new Uint8Array());
  }],
  ["between content and record, or between tombstone and removal", async (files) => {
    await Deno.mkdir(`${files}/unsettled`, { recursive: true });
    await Deno.mkdir(`${files}/${DIGEST.slice(0, 2)}`, { recursive: true });
    await Deno.writeFile(`${files}/unsettled/${DIGEST}`, new Uint8Array());
    await Deno.writeFile(`${files}/${DIGEST.slice(0, 2)}/${DIGEST}`, CONTENT);
  }],
];

for (const [when, leave] of LEFTOVERS) {
  onFiles(`the next publish clears up after one that was killed ${when}`, async () => {
    await using subject = await openLocal();
    await leave(`${subject.folder}/files`);
    assertEquals((await strays(subject.folder)).length > 0, true);
    await subject.publish(description(), new Uint8Array([1]));
    assertEquals(await strays(subject.folder), []);
  });
}

onFiles("the next publish keeps the content of one that was killed after its record", async () => {
  await using subject = await openLocal();
  const item = await subject.publish(description(), CONTENT);
  await Deno.writeFile(`${subject.folder}/files/unsettled/${item.digest}`, new Uint8Array());
  await subject.publish(description(), new Uint8Array([1]));
  assertEquals((await subject.storage.find(item.token)).state, "published");
  assertEquals(await strays(subject.folder), []);
});

asProcess("a publish leaves the staged content of a living one alone", async () => {
  await using subject = await openLocal();
  const release = Promise.withResolvers<void>();
  const half = Promise.withResolvers<void>();
  const slow = (async function* () {
    yield CONTENT.subarray(0, 3);
    half.resolve();
    await release.promise;
    yield CONTENT.subarray(3);
  })();
  const staging = subject.storage.stage({ read: () => slow });
  await half.promise;
  // Another process, so that it sweeps.
  assertEquals((await media(subject.folder, ["publish", SAMPLE_MP3])).code, 0);
  release.resolve();
  await using staged = await staging;
  const token = newToken();
  const item = await subject.storage.publish({ ...description(), token }, staged);
  assertEquals(await new Response(await subject.storage.open(item)).bytes(), CONTENT);
});
