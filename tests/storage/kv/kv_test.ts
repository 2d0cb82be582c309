import { assertEquals } from "@std/assert";
import type { OpenerTask } from "../../support/kv_opener.ts";

Deno.test("openKv() opens a new database in many threads at once", async () => {
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
