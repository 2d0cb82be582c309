/** A HEAD says what the GET would say of content that is there and cannot be read. */

import { assertEquals } from "@std/assert";
import { openEngine } from "../../../lib/storage/media/sqlite.ts";
import type { PublishedItem } from "../../../lib/storage/item.ts";
import { openLocal } from "../../support/local_storage.ts";
import { inFolder } from "../../support/media_cli.ts";
import { LINUX, needing, program } from "../../support/permissions.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { response, ScriptedStore } from "../../support/scripted_store.ts";
import { ServerProcess } from "../../support/server.ts";
import { newMetadata } from "../storage_suite.ts";

/** Returns the statuses of requests sent one after the other. */
async function statusesOf(
  { port }: ServerProcess,
  { token }: PublishedItem,
  methods: readonly string[],
): Promise<number[]> {
  const statuses = [];
  for (const method of methods) {
    statuses.push((await requestRaw(port, method, `/media/${token}`)).status);
  }
  return statuses;
}

const METHODS = ["HEAD", "GET", "HEAD", "GET", "HEAD"];

needing("processes", LINUX, program("setpriv"))(
  "a file that can be seen and not read is 503 on HEAD and GET alike",
  async () => {
    await using subject = await openLocal();
    const item = await subject.publish(newMetadata(), new Uint8Array(10));
    await subject.storage.close();
    const path = `${subject.folder}/files/${item.digest.slice(0, 2)}/${item.digest}`;
    const runner = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]; // for root
    const isRoot = Deno.uid() === 0;
    await using server = await ServerProcess.start({}, subject.folder, {
      runner: isRoot ? runner : [],
    });
    await Deno.chmod(path, 0o000);
    assertEquals(await statusesOf(server, item, METHODS), [503, 503, 503, 503, 503]);
    await Deno.chmod(path, 0o600);
    assertEquals(await statusesOf(server, item, METHODS), [200, 200, 200, 200, 200]);
  },
);

needing("processes")(
  "a HEAD is 503 after a GET was, even if the store finds the object sound",
  () =>
    inFolder(async (folder) => {
      const item = { ...newMetadata(), digest: "ab".repeat(32), length: 7 };
      const engine = await openEngine(`sqlite:${folder}/catalogue.sqlite`);
      await engine.catalogue.claimContent("name");
      await engine.catalogue.add(item);
      await engine.close();
      await using store = new ScriptedStore();
      store.script = (head) => {
        if (head.startsWith("GET /media/p/media-head ")) return response(200, {}, "name");
        const content = head.startsWith("GET") ? "con" : ""; // which ends early
        return response(200, { "Content-Length": "7" }, content);
      };
      const { endpoint = "", accessKeyId, secretAccessKey, region } = store.settings;
      await using server = await ServerProcess.start({
        CONTENT: "s3://media/p",
        AWS_ENDPOINT_URL_S3: endpoint,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
        AWS_REGION: region,
      }, folder);
      assertEquals(await statusesOf(server, item, METHODS), [200, 503, 503, 503, 503]);
    }),
);
