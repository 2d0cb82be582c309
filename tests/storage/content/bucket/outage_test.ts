/** A server while its content store fails, and after. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { sqliteAt } from "../../../../lib/database/place.ts";
import { openEngine } from "../../../../lib/storage/engines/sqlite.ts";
import type { PublishedItem } from "../../../../lib/storage/item.ts";
import { checkParity, checkProblem } from "../../../server/request_table.ts";
import { newMetadata } from "../../storage_suite.ts";
import { newPrefix, openBucket } from "../../../support/bucket_storage.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { field, type RawResponse, requestRaw } from "../../../support/raw_http.ts";
import { BUCKET, S3_STORE, S3Store, SECRET_KEY } from "../../../support/s3_store.ts";
import { ServerProcess } from "../../../support/server.ts";

/** Milliseconds until a response: 5,000 on an idle machine, and without a limit never. */
const ANSWERED = 30_000;

/**
 * Milliseconds from the end of a failure until everything is served again: on an idle machine the
 * 5,000 for which a lookup is reused.
 */
const BACK = 60_000;

const CONTENT = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);

const store = shared(S3_STORE, () => S3Store.start());
const test = needing(...S3_STORE);

/** What a failure affects. */
interface World {
  readonly server: ServerProcess;
  /** Another process on the same storage. */
  readonly second: ServerProcess;
  /** Publishes a copy of content. Returns the item, and the key of the object. */
  readonly copy: (content: Uint8Array) => Promise<{ item: PublishedItem; key: string }>;
  /** Publishes content in place, under a key as it is in URLs. */
  readonly place: (key: string, content: Uint8Array) => Promise<PublishedItem>;
  /** Items: one that was copied, one in place, and one that no GET asks for. */
  readonly copied: PublishedItem;
  readonly inPlace: PublishedItem;
  readonly other: PublishedItem;
}

/** The key of an object in place, with characters that URLs must encode. */
const OWN_KEY = "own/a%2Bb%20%28%C3%BC%29%21%27%2A~.mp4";

/** Serves three items, for which no HEAD was sent yet. */
async function withServer(body: (world: World) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const prefix = newPrefix();
    const engine = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
    await using subject = await openBucket(store(), engine, prefix);
    const copy: World["copy"] = async (content) => {
      const item = await subject.publish(newMetadata("audio"), content);
      return { item, key: encodeURI(`${prefix}/${item.digest.slice(0, 2)}/${item.digest}`) };
    };
    const place: World["place"] = async (key, content) => {
      await put(key, content);
      const path = `s3://${BUCKET}/${decodeURIComponent(key)}`;
      const { location, length, validator } = await subject.storage.statObject(path);
      const hash = await crypto.subtle.digest("SHA-256", new Uint8Array(content));
      const digest = new Uint8Array(hash).toHex();
      const item = { ...newMetadata("video"), location, length, validator, digest };
      await subject.storage.catalogue.add(item);
      return item;
    };
    const { item: copied } = await copy(CONTENT);
    const { item: other } = await copy(CONTENT.subarray(1));
    const inPlace = await place(OWN_KEY, CONTENT.subarray(2));
    const start = () => ServerProcess.start(store().environment(prefix), folder);
    await using server = await start();
    await using second = await start();
    await body({ server, second, copy, place, copied, inPlace, other });
  });
}

const put = (key: string, content: Uint8Array) =>
  store().request("PUT", key, new Uint8Array(content));

const targetOf = ({ token }: PublishedItem) => `/media/${token}`;

/** Sends a request, which must be answered in time. */
async function send({ port }: ServerProcess, method: string, target: string): Promise<RawResponse> {
  const started = performance.now();
  const seen = await requestRaw(port, method, target);
  const took = performance.now() - started;
  assert(took < ANSWERED, `${method} ${target} took ${took} ms`);
  return seen;
}

/** Sends GETs, and then HEADs, which must agree; returns the statuses. */
async function statusesOf(server: ServerProcess, targets: string[]): Promise<number[]> {
  const gets = await Promise.all(targets.map((target) => send(server, "GET", target)));
  const heads = await Promise.all(targets.map((target) => send(server, "HEAD", target)));
  return gets.map((get, index) => {
    const target = targets[index] as string;
    checkParity(target, heads[index] as RawResponse, get);
    if (get.status === 502) checkProblem(target, get, "content-replaced");
    if (get.status === 503) {
      checkProblem(target, get, "storage-unavailable");
      assertMatch(field(get, "retry-after") ?? "", /^\d+$/);
    }
    return get.status;
  });
}

/** Waits until HEADs have a status. */
async function untilHeads(server: ServerProcess, targets: string[], status: number): Promise<void> {
  const since = performance.now();
  for (const target of targets) {
    while ((await send(server, "HEAD", target)).status !== status) {
      const waited = performance.now() - since;
      assert(waited < BACK, `${target} is not ${status} after ${waited} ms`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Waits until everything is served again. */
async function isBack(server: ServerProcess, targets: string[]): Promise<void> {
  await untilHeads(server, targets, 200);
  assertEquals(await statusesOf(server, targets), targets.map(() => 200));
}

/** Something that happens to the whole store. */
interface Failure {
  readonly what: string;
  /** What the log says of it. */
  readonly logged: RegExp;
  readonly begin: () => Promise<void>;
  readonly end: () => Promise<void>;
}

const FAILURES: Failure[] = [
  {
    what: "is stopped",
    logged: /the store cannot be reached/,
    begin: () => store().stop(),
    end: () => store().launch(),
  },
  {
    what: "is frozen",
    logged: /no answer from the store within 4\.5 s/,
    begin: () => store().freeze(),
    end: () => store().thaw(),
  },
];

for (const { what, logged, begin, end } of FAILURES) {
  test(`a server answers 503 while the store ${what}, and recovers`, () =>
    withServer(async ({ server, second, copied, inPlace, other }) => {
      const asked = [targetOf(copied), targetOf(inPlace), "/healthz"];
      const unasked = targetOf(other);
      assertEquals(await statusesOf(server, asked), [200, 200, 200]);
      assertEquals((await send(server, "HEAD", unasked)).status, 200);
      assertEquals((await send(second, "HEAD", unasked)).status, 200);

      await begin();
      assertEquals(await statusesOf(server, asked), [503, 503, 503]);
      assertEquals((await send(server, "HEAD", unasked)).status, 503);
      await untilHeads(second, [unasked], 503); // without any GET
      assertEquals(await statusesOf(second, asked), [503, 503, 503]);

      await end();
      await isBack(server, [...asked, unasked]);
      await isBack(second, [...asked, unasked]);
      const { log } = await server.stop();
      const text = JSON.stringify(log);
      assertMatch(text, logged);
      for (const secret of [SECRET_KEY, copied.token, inPlace.token]) {
        assert(!text.includes(secret));
      }
    }));
}

test("a server distinguishes missing from replaced content, until it is restored", () =>
  withServer(async ({ server, second, copy, place, other }) => {
    const copied = async (content: Uint8Array) => {
      const { item, key } = await copy(content);
      return { target: targetOf(item), key, content };
    };
    const placed = async (key: string, content: Uint8Array) => {
      return { target: targetOf(await place(key, content)), key, content };
    };
    type Object = Awaited<ReturnType<typeof copied>>;
    const rows: [what: string, object: Object, changed: Uint8Array | undefined, status: number][] =
      [
        ["gone", await copied(CONTENT.subarray(3)), undefined, 503],
        ["shorter", await copied(CONTENT.subarray(4)), CONTENT.subarray(5), 502],
        ["longer", await copied(CONTENT.subarray(6)), CONTENT.subarray(5), 502],
        [
          "another of the same length",
          await placed("own/b.mp4", CONTENT.subarray(7)),
          CONTENT.slice(7).reverse(),
          502,
        ],
        ["another of another length", await placed(OWN_KEY, CONTENT.subarray(8)), CONTENT, 502],
      ];
    const targets = rows.map(([, { target }]) => target);
    for (const each of [server, second]) {
      assertEquals(await statusesOf(each, targets), targets.map(() => 200));
    }
    for (const [what, { target, key }, changed, status] of rows) {
      await (changed === undefined ? store().request("DELETE", key) : put(key, changed));
      for (const each of [server, second]) {
        assertEquals(await statusesOf(each, [target]), [status], what);
      }
      const range = { Range: `bytes=${CONTENT.length - 100}-` };
      const ranged = await requestRaw(server.port, "GET", target, range);
      assertEquals(ranged.status, status, what);
      const others = await statusesOf(server, [targetOf(other), "/healthz"]);
      assertEquals(others, [200, 200], "everything else is served");
    }
    for (const [, { key, content }] of rows) await put(key, content);
    await Promise.all([server, second].map((each) => isBack(each, targets)));
  }));
