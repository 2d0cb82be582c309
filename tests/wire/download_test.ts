/** Downloads that clients abort, and content larger than the memory that a process may use. */

import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async/delay";
import { sqliteAt } from "../../lib/database/place.ts";
import { openEngine } from "../../lib/storage/engines/sqlite.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { newPrefix, openBucket } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, mediaCommand, withoutCreation } from "../support/media_cli.ts";
import { LINUX, needing, shared } from "../support/permissions.ts";
import { field, requestHead, requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { WAV_HEADER } from "../support/wav.ts";

const store = shared(S3_STORE, () => S3Store.start());

/** ABORTS=1000 makes it a long run. */
const aborts = () => Number(Deno.env.get("ABORTS") ?? 60);
const LENGTH = 8_000_000;

needing("processes", LINUX)(
  "a server process releases everything after downloads that clients abort halfway",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(LENGTH));
    await using server = await ServerProcess.start({}, subject.folder);
    await checkAborts(server, `/media/${token}`);
  },
);

needing(...S3_STORE)(
  "a server process releases connections to the store after downloads that clients abort",
  () =>
    inFolder(async (folder) => {
      const prefix = newPrefix();
      const engine = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
      await using subject = await openBucket(store(), engine, prefix);
      const { token } = await subject.publish(newMetadata(), new Uint8Array(LENGTH));
      await using server = await ServerProcess.start(store().environment(prefix), folder);
      await checkAborts(server, `/media/${token}`, store().port);
    }),
);

for (const [what, fields] of [["a GET", {}], ["a ranged GET", { Range: "bytes=1-" }]] as const) {
  needing("processes", LINUX)(
    `a server process logs one line when content is cut short during ${what}`,
    async () => {
      await using subject = await openLocal();
      const content = new Uint8Array(4 * LENGTH); // more than sockets hold
      const item = await subject.publish(newMetadata(), content);
      await using server = await ServerProcess.start({}, subject.folder);
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      await connection.write(requestHead("GET", `/media/${item.token}`, fields));
      let length = await connection.read(new Uint8Array(1_000)) ?? 0;
      await subject.damage(item, new Uint8Array(1));
      for await (const chunk of connection.readable) length += chunk.length;
      assert(length < content.length, `${length} bytes were sent`);
      const { log, stderr } = await server.stop();
      const lines = log.filter(({ event }) => event === "error").map(({ cause }) => cause);
      assertEquals(lines, [`StorageError: files: content ${item.digest} ended early`]);
      assertEquals(stderr.split("\n").filter((line) => !/^(\{.*\})?$/.test(line)), []);
    },
  );
}

/** Aborts downloads, at once or halfway, and compares what the server holds before and after. */
async function checkAborts(server: ServerProcess, path: string, storePort?: number): Promise<void> {
  const abort = async (fields: Record<string, string>, length: number) => {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await connection.write(requestHead("GET", path, fields));
    const buffer = new Uint8Array(1_000_000);
    for (let read = 0; read < length;) {
      const count = await connection.read(buffer);
      assert(count !== null, "The server ended the answer early");
      read += count;
    }
  };
  const round = async (count: number) => {
    const ranged = { Range: "bytes=1-" };
    for (let done = 0; done < count; done += SIDE_BY_SIDE) {
      const half = LENGTH / 2;
      await Promise.all([abort({}, half), abort(ranged, half), abort({}, 0), abort(ranged, 1)]);
    }
  };

  await round(40); // warms everything up
  const before = await settled(server.pid);
  await round(aborts());
  const after = await settled(server.pid, storePort);
  assertEquals(after.content, 0);
  const held = `from ${JSON.stringify(before)} to ${JSON.stringify(after)}`;
  assert(after.connections <= SIDE_BY_SIDE, held);
  assert(after.files <= before.files + 5, held);
  assert(after.megabytes < before.megabytes + 80, held);
  const range = { Range: "bytes=-5" };
  assertEquals((await requestRaw(server.port, "GET", path, range)).content, new Uint8Array(5));
}

/** How many downloads run at a time. Their connections to the store may stay open, but idle. */
const SIDE_BY_SIDE = 4;

/** Milliseconds to close what clients left. Idle connections to the store stay for 20 to 40 s. */
const TIMEOUT = 120_000;

/** What a process holds after closing what its clients left, at the latest after the timeout. */
async function settled(pid: number, storePort?: number): Promise<ReturnType<typeof heldBy>> {
  const started = performance.now();
  let held = heldBy(pid, storePort);
  while (performance.now() - started < TIMEOUT) {
    await delay(50);
    const next = heldBy(pid, storePort);
    const isSettled = next.content === 0 && next.connections <= SIDE_BY_SIDE;
    if (isSettled && next.files === held.files) return next;
    held = next;
  }
  return held;
}

/**
 * Returns what a process holds: open file descriptors, how many of these are of content and how many
 * are connections to the store, and its resident memory.
 */
function heldBy(pid: number, storePort?: number) {
  const links = [...Deno.readDirSync(`/proc/${pid}/fd`)].map(({ name }) => {
    try {
      return Deno.readLinkSync(`/proc/${pid}/fd/${name}`);
    } catch {
      return ""; // closed meanwhile
    }
  });
  const sockets = storePort === undefined ? new Set() : socketsTo(storePort);
  return {
    files: links.length,
    content: links.filter((link) => /\/files\/..\/[0-9a-f]{64}$/.test(link)).length,
    connections: links.filter((link) => sockets.has(link)).length,
    megabytes: memoryOf(pid, "VmRSS"),
  };
}

/** Returns a size of a process, in MB; 0 if it has ended. */
function memoryOf(pid: number, name: "VmRSS" | "VmHWM"): number {
  try {
    const sizes = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(sizes)?.[1] ?? 0) / 1024);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}

/** Returns the sockets of this machine that are connected to a port, as named in /proc. */
function socketsTo(port: number): Set<string> {
  const rows = Deno.readTextFileSync("/proc/net/tcp").split("\n").slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/));
  const remote = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return new Set(
    fields.filter(([, , address]) => address?.endsWith(remote)).map((row) => `socket:[${row[9]}]`),
  );
}

/** MEGABYTES=2048 makes it a long run. */
const megabytes = () => Number(Deno.env.get("MEGABYTES") ?? 200);

/** How much more memory a process may use for the large item than for a small one, in MB. */
const GROWTH = 120;

/** Returns the peak memory of a process so far, in MB; 0 if it has ended. */
const peakOf = (pid: number) => memoryOf(pid, "VmHWM");

/** Makes a sparse file that is all zeros after its header. */
async function makeFile(path: string, length: number): Promise<void> {
  using file = await Deno.open(path, { write: true, create: true });
  await file.write(WAV_HEADER);
  await file.truncate(length);
}

needing(...S3_STORE)(
  "an item of any size is published and read in constant memory",
  () =>
    inFolder(async (folder) => {
      const environment = store().environment(newPrefix());
      const length = megabytes() * 1_000_000;
      const publish = async (length: number) => {
        const path = `${folder}/${length}.wav`;
        await makeFile(path, length);
        const child = mediaCommand(folder, ["publish", path, "--json"], environment).spawn();
        const output = child.output();
        let isRunning = true;
        child.status.then(() => isRunning = false);
        let peak = 0;
        while (isRunning) {
          peak = Math.max(peak, peakOf(child.pid));
          await delay(20);
        }
        const { code, stdout, stderr } = await output;
        assertEquals([code, withoutCreation(new TextDecoder().decode(stderr))], [0, ""]);
        return { peak, record: JSON.parse(new TextDecoder().decode(stdout)) };
      };
      const small = await publish(1_000_000);
      const large = await publish(length);
      assertEquals(large.record.length, length);
      const peaks = `${large.peak} MB, for a small one ${small.peak} MB`;
      assert(large.peak < small.peak + GROWTH, peaks);

      await using server = await ServerProcess.start(environment, folder);
      const path = `/media/${large.record.token}`;
      const range = { Range: "bytes=-10" };
      const part = await requestRaw(server.port, "GET", path, range);
      assertEquals([part.status, part.content], [206, new Uint8Array(10)]);
      assertEquals(field(part, "content-range"), `bytes ${length - 10}-${length - 1}/${length}`);
      const before = peakOf(server.pid);

      const reader = (await fetch(server.origin + path)).body?.getReader();
      assert(reader !== undefined);
      let read = (await reader.read()).value?.length ?? 0;
      await delay(1_000); // the client does not read meanwhile
      const idle = peakOf(server.pid);
      for (let chunk; (chunk = (await reader.read()).value) !== undefined;) read += chunk.length;
      const after = peakOf(server.pid);
      assertEquals(read, length);
      assert(after < before + GROWTH, `${before} MB, ${idle} MB, ${after} MB`);
    }),
);
