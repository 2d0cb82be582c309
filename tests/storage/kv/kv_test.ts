import { assertEquals, assertRejects } from "@std/assert";
import { openKv } from "../../../lib/storage/kv/kv.ts";
import { StorageError } from "../../../lib/storage/storage.ts";
import type { OpenerTask } from "../../support/kv_opener.ts";
import { needing } from "../../support/permissions.ts";

const test = needing("files");

test("openKv() opens a new database in many threads at once", async () => {
  const folder = await Deno.makeTempDir();
  const threads = 4;
  const task: OpenerTask = {
    paths: Array.from({ length: 60 }, (_, index) => `${folder}/${index}.sqlite`),
    threads,
    arrivals: new Int32Array(new SharedArrayBuffer(4)),
  };
  const url = new URL("../../support/kv_opener.ts", import.meta.url);
  const faults = await Promise.all(Array.from({ length: threads }, () => {
    const worker = new Worker(url, { type: "module" });
    const { promise, resolve } = Promise.withResolvers<string[]>();
    worker.addEventListener("message", ({ data }) => {
      worker.terminate();
      resolve(data);
    }, { once: true });
    worker.postMessage(task);
    return promise;
  }));
  assertEquals(faults.flat(), []);
  await Deno.remove(folder, { recursive: true });
});

test("openKv() says what cannot be opened", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(
    `${folder}/catalogue.sqlite`,
    "no database, and not a short text either",
  );
  const opening = () => openKv(`${folder}/catalogue.sqlite`);
  await assertRejects(opening, StorageError, "kv: cannot open the catalogue");
  await Deno.remove(folder, { recursive: true });
});
