/** A HEAD says what the GET would say of content that is there and cannot be read. */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import { sqliteAt } from "../../../lib/database/place.ts";
import { openEngine } from "../../../lib/storage/engines/sqlite.ts";
import type { PublishedItem } from "../../../lib/storage/item.ts";
import { newMetadata } from "../storage_suite.ts";
import { openLocal } from "../../support/local_storage.ts";
import { inFolder, mediaHere, testsInFolder } from "../../support/media_cli.ts";
import { LINUX, needing, program } from "../../support/permissions.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { refusal, response, type Script, ScriptedStore } from "../../support/scripted_store.ts";
import { ServerProcess } from "../../support/server.ts";
import { until } from "../../support/within.ts";

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
    await subject.close();
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

/** Adds an item to a new catalogue in a folder, whose content is in a scripted store. */
async function addItem(folder: string, item: PublishedItem): Promise<void> {
  const engine = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
  await engine.catalogue.claimContent("name");
  await engine.catalogue.add(item);
  await engine.close();
}

/** Returns the variables that put content into a scripted store. */
function environmentOf({ settings }: ScriptedStore): Record<string, string> {
  const { endpoint = "", accessKeyId, secretAccessKey, region } = settings;
  return {
    CONTENT: "s3://media/p",
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
  };
}

/** Serves an item from a store that has the right identifier, and else follows a script. */
async function withScript(
  script: Script,
  body: (server: ServerProcess, item: PublishedItem, store: ScriptedStore) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const item = { ...newMetadata(), digest: "ab".repeat(32), length: 7 };
    await addItem(folder, item);
    await using store = new ScriptedStore();
    store.script = (head) =>
      head.startsWith("GET /media/p/media-head ") ? response(200, {}, "name") : script(head);
    await using server = await ServerProcess.start(environmentOf(store), folder);
    await body(server, item, store);
  });
}

/** A sound object, whose content ends early. */
const CUT_OFF: Script = (head) =>
  response(200, { "Content-Length": "7" }, head.startsWith("GET") ? "con" : "");

needing("processes")(
  "a HEAD is 503 after a GET was, even if the store finds the object sound",
  () =>
    withScript(CUT_OFF, async (server, item) => {
      assertEquals(await statusesOf(server, item, METHODS), [200, 503, 503, 503, 503]);
    }),
);

testsInFolder("processes")(
  "an archived object is the same fault to HEAD, GET, publish and verify, until it is restored",
  async (folder) => {
    const [text, path] = ["content", `${folder}/a.mp3`];
    await Deno.writeTextFile(path, text);
    const digest = createHash("sha256").update(text).digest("hex");
    const item = { ...newMetadata(), digest, length: text.length };
    await addItem(folder, item);
    await using store = new ScriptedStore();
    let restored = "";
    store.script = (head) => {
      if (head.startsWith("GET /media/p/media-head ")) return response(200, {}, "name");
      if (head.startsWith("GET /media/?")) return response(200, {}, "</ListBucketResult>");
      const isHead = head.startsWith("HEAD");
      if (!isHead && restored === "") return refusal(403, "InvalidObjectState");
      const range = /^range: bytes=(\d+)-(\d+)\r$/im.exec(head);
      const [first, last] = range?.slice(1).map(Number) ?? [0, text.length - 1];
      const part = text.slice(first, last as number + 1);
      return response(range === null ? 200 : 206, {
        ETag: '"v1"',
        "Content-Length": String(part.length),
        ...range && { "Content-Range": `bytes ${first}-${last}/${text.length}` },
        "x-amz-storage-class": "GLACIER",
        ...restored === "" ? {} : { "x-amz-restore": restored },
      }, isHead ? "" : part);
    };
    const environment = environmentOf(store);
    const run = (...args: string[]) => mediaHere(folder, args, environment);
    const fault = "cannot be read: the store answers 403 (InvalidObjectState)";

    await using server = await ServerProcess.start(environment, folder);
    assertEquals(await statusesOf(server, item, METHODS), [503, 503, 503, 503, 503]);
    const verified = await run("verify");
    assertEquals(verified.code, 1, verified.stderr);
    assertStringIncludes(verified.stdout, `content ${digest} ${fault}`);
    const publish = (source: string) => run("publish", "--type", "audio/mpeg", source);
    const [copied, inPlace] = [await publish(path), await publish("s3://media/a.mp3")];
    assertEquals([copied.code, inPlace.code], [1, 1]);
    assertStringIncludes(copied.stderr, `content ${digest} ${fault}`);
    assertEquals(inPlace.stderr, `media: "s3://media/a.mp3" ${fault}\n`);

    restored = 'ongoing-request="false", expiry-date="Fri, 01 Jan 2027 00:00:00 GMT"';
    const isServed = async () => (await statusesOf(server, item, ["HEAD"]))[0] === 200;
    await until("the restored object", isServed); // a fault is known for five seconds
    assertEquals(await statusesOf(server, item, METHODS), [200, 200, 200, 200, 200]);
    assertEquals((await run("verify")).code, 0);
    for (const source of [path, "s3://media/a.mp3"]) {
      assertEquals((await publish(source)).code, 0, source);
    }
  },
);

needing("processes")(
  "the log says why a store refuses all requests, even if only HEADs came",
  () =>
    withScript(CUT_OFF, async (server, item, store) => {
      // A HEAD's answer has no content to say so.
      store.script = (head) =>
        head.startsWith("HEAD") ? response(400, {}) : refusal(400, "ExpiredToken");
      assertEquals(await statusesOf(server, item, ["HEAD", "HEAD"]), [503, 503]);
      const { log } = await server.stop();
      const [cause] = log.filter(({ event }) => event === "error").map(({ cause }) => cause);
      assertMatch(String(cause), /the store answers 400 \(ExpiredToken\)/);
    }),
);
