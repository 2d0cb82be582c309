/** An item much larger than the memory limit, published into a bucket and read from it. */

import { assert, assertEquals } from "@std/assert";
import { newPrefix } from "../support/bucket_storage.ts";
import { inFolder, mediaCommand, withoutCreation } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";

const store = shared(S3_STORE, () => S3Store.start());

/** MEGABYTES=2048 makes it a long run. */
const megabytes = () => Number(Deno.env.get("MEGABYTES") ?? 200);

/** How much more memory a process may use for the large item than for a small one, in MB. */
const GROWTH = 120;

/** Returns the peak memory of a process so far, in MB; 0 if it has ended. */
function peakOf(pid: number): number {
  try {
    const peak = /VmHWM:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1];
    return Math.round(Number(peak ?? 0) / 1024);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}

/** Makes a sparse file that is all zeros after its header. */
async function makeFile(path: string, length: number): Promise<void> {
  using file = await Deno.open(path, { write: true, create: true });
  await file.write(new TextEncoder().encode("RIFF\x24\x00\x00\x00WAVEfmt "));
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
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        const { code, stdout, stderr } = await output;
        assertEquals([code, withoutCreation(new TextDecoder().decode(stderr))], [0, ""]);
        return { peak, record: JSON.parse(new TextDecoder().decode(stdout)) };
      };
      const small = await publish(1_000_000);
      const large = await publish(length);
      assertEquals(large.record.length, length);
      assert(
        large.peak < small.peak + GROWTH,
        `${large.peak} MB, for a small one ${small.peak} MB`,
      );

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
      await new Promise((resolve) => setTimeout(resolve, 1_000)); // the client does not read meanwhile
      const idle = peakOf(server.pid);
      for (let chunk; (chunk = (await reader.read()).value) !== undefined;) read += chunk.length;
      const after = peakOf(server.pid);
      assertEquals(read, length);
      assert(after < before + GROWTH, `${before} MB, ${idle} MB, ${after} MB`);
    }),
);
