import { assert, assertEquals } from "@std/assert";
import { description } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { LINUX, needing } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes", LINUX);

/** ABORTS=1000 makes a long run of it. */
const aborts = () => Number(Deno.env.get("ABORTS") ?? 120);
const LENGTH = 50_000_000;

// What a process holds is read from /proc.
test("a server process holds nothing of downloads that clients abort half way", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(description(), new Uint8Array(LENGTH));
  await using server = await ServerProcess.start({}, subject.folder);
  const path = `/media/${token}`;

  const abort = async (fields: string) => {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const request = `GET ${path} HTTP/1.1\r\nHost: test\r\n${fields}\r\n`;
    await connection.write(new TextEncoder().encode(request));
    const buffer = new Uint8Array(1_000_000);
    for (let read = 0; read < LENGTH / 2;) {
      const count = await connection.read(buffer);
      assert(count !== null, "The server ended the answer early");
      read += count;
    }
  };
  const round = async (count: number) => {
    for (let done = 0; done < count; done += 4) {
      const ranged = "Range: bytes=1-\r\n"; // read in another way than the whole
      await Promise.all(["", ranged, "", ranged].map(abort));
    }
    return await settled(server.pid);
  };

  const before = await round(40); // warms everything up
  const more = aborts();
  const after = await round(more);
  console.log(`after 40 aborts: ${before}; after ${more} more: ${after}`);
  assertEquals(after.files, before.files);
  assert(after.megabytes < before.megabytes + 50, `memory grew from ${before} to ${after}`);
  assertEquals((await fetch(server.origin + path, { method: "HEAD" })).status, 200);
});

/** What a process holds, once it has closed what its clients left. */
async function settled(pid: number): Promise<Held> {
  let held = Held.by(pid);
  for (let tries = 0; tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const next = Held.by(pid);
    if (next.content === 0 && next.files === held.files) return next;
    held = next;
  }
  return held;
}

class Held {
  private constructor(
    /** Open file descriptors. */
    readonly files: number,
    /** Those of them that are content of items. */
    readonly content: number,
    /** Resident memory. */
    readonly megabytes: number,
  ) {}

  static by(pid: number): Held {
    const links = [...Deno.readDirSync(`/proc/${pid}/fd`)].map(({ name }) => {
      try {
        return Deno.readLinkSync(`/proc/${pid}/fd/${name}`);
      } catch {
        return ""; // closed meanwhile
      }
    });
    const content = links.filter((link) => /\/files\/..\/[0-9a-f]{64}$/.test(link)).length;
    const resident = /VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1];
    return new Held(links.length, content, Math.round(Number(resident) / 1024));
  }

  toString(): string {
    return `${this.files} files open (${this.content} of content), ${this.megabytes} MB`;
  }
}
