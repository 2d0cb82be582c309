/**
 * A server on Deno Deploy, as documented: a database in DATABASE_URL, behind a pooler; no
 * persistent disk; started by a request, such as the `GET /` that a new build is sent, and stopped
 * when idle; SIGINT, then SIGKILL five seconds later. And the whole request table on the wire,
 * there and on files.
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { DEPLOY_TIME_LIMITS } from "../../lib/server/process.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { newPrefix, openBucket } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, mediaHere } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../support/pgbouncer.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { PostgresServer } from "../support/postgres.ts";
import { field, requestHead, requestRaw } from "../support/raw_http.ts";
import { Relay } from "../support/relay.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { runTable } from "../support/table_on_server.ts";

const NEEDS = [...PGBOUNCER, ...S3_STORE];
const postgres = shared(NEEDS, () => PostgresServer.start());
const bouncer = shared(NEEDS, () => startPgBouncer(postgres()));
const store = shared(NEEDS, () => S3Store.start());
const test = needing(...NEEDS);

/** It must write nothing to the disk: that would be lost. */
const FLAGS = ["--no-prompt", "--allow-all", "--deny-write"];

/** Starts a server as Deno Deploy does, and checks that it leaves the folder empty. */
function start(environment: Record<string, string>, folder: string): Promise<ServerProcess> {
  return ServerProcess.start({ DENO_DEPLOY: "true", CONTENT: "", ...environment }, folder, {
    flags: FLAGS,
  });
}

/** Publishes an item of this length into a bucket; returns its token and a server's environment. */
async function publishIntoBucket(databaseUrl: string, length: number) {
  const prefix = newPrefix();
  await using subject = await openBucket(store(), await openEngine(databaseUrl), prefix);
  await subject.storage.prepare();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(length).fill(1));
  return { token, bucket: store().environment(prefix) };
}

/** Returns what the gate says of the last whole day. */
async function gateOn(DATABASE_URL: string, folder: string) {
  const words = ["usage", "--gate", "1", "--json"];
  return await mediaHere(folder, words, { DATABASE_URL, CONTENT: "none" });
}

/** Returns the calls to /audio on record. */
async function callsTo(DATABASE_URL: string, folder: string): Promise<number> {
  const { stdout } = await gateOn(DATABASE_URL, folder);
  return JSON.parse(stdout).routes[0].calls;
}

async function newDatabase(): Promise<string> {
  return postgres().urlOf(await postgres().createDatabase(), bouncer().port);
}

test("on Deno Deploy, a server serves public URLs, and content, too, once it has a bucket", () =>
  inFolder(async (folder) => {
    const DATABASE_URL = await newDatabase();
    const bucket: Record<string, string> = { DATABASE_URL, ...store().environment(newPrefix()) };
    const linksOnly = { DATABASE_URL, CONTENT: "none" };
    const publish = async (source: string, environment: Record<string, string>) => {
      const result = await mediaHere(folder, ["publish", "--json", source], environment);
      assertEquals(result.code, 0, result.stderr);
      return JSON.parse(result.stdout).token as string;
    };
    const sample = await Deno.readFile(SAMPLE_MP3);
    await using origin = new Origin(() =>
      new Response(sample, { headers: { "Content-Type": "audio/mpeg" } })
    );

    await using first = await start({ DATABASE_URL }, folder);
    const linked = await publish(origin.url("/a.mp3"), linksOnly);
    const refused = await mediaHere(folder, ["publish", SAMPLE_MP3], linksOnly);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.stderr, 'CONTENT is "none"');
    // Adds a bucket to a catalogue that already has items.
    const copied = await publish(SAMPLE_MP3, bucket);

    await using second = await start(bucket, folder);
    for (const [{ port }, status] of [[first, 503], [second, 200]] as const) {
      for (const method of ["HEAD", "GET"]) {
        const link = await requestRaw(port, method, `/audio/${linked}`);
        assertEquals([link.status, field(link, "location")], [307, origin.url("/a.mp3")]);
        const copy = await requestRaw(port, method, `/audio/${copied}`);
        assertEquals(copy.status, status);
        if (status === 200 && method === "GET") assertEquals(copy.content, sample);
      }
      assertEquals((await requestRaw(port, "HEAD", "/healthz")).status, 200);
    }

    assertEquals(
      origin.requests,
      ["HEAD /a.mp3", "GET /a.mp3"],
      "only publishing asks for a public URL",
    );
    const one = await first.stop("SIGINT");
    const other = await second.stop("SIGINT");
    assertEquals([one.code, other.code], [0, 0]);
    const created = 'created the catalogue in schema "public" of "postgres://';
    assertEquals(String(one.log[0]?.["message"]).slice(0, created.length), created);
    assertEquals([one.log[1]?.["content"], other.log[0]?.["content"]], [
      "none: public URLs only",
      bucket["CONTENT"],
    ]);
    assertEquals(await callsTo(DATABASE_URL, folder), 8);
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

test("on Deno Deploy, a time without a server is no gap, and the gate is clear while none is awake", () =>
  inFolder(async (folder) => {
    const name = await postgres().createDatabase();
    const DATABASE_URL = postgres().urlOf(name, bouncer().port);
    /** Starts a server by a request, and stops it when idle. */
    const serve = async () => {
      await using server = await start({ DATABASE_URL }, folder);
      assertEquals((await requestRaw(server.port, "GET", "/")).status, 404);
      assertEquals((await requestRaw(server.port, "HEAD", "/healthz")).status, 200);
      assertEquals((await server.stop("SIGINT")).code, 0);
    };
    /** Lets time pass. */
    const pass = async (minutes: number) => {
      const columns = ["began", "reported", "written"];
      const earlier = columns.map((column) => `${column} = ${column} - ${minutes * 60_000}`);
      await postgres().query(`UPDATE media_head_session SET ${earlier.join()}`, name);
    };
    for (const minutes of [3 * 24 * 60, 10, 2]) { // asleep, and asked while it sleeps
      await serve();
      await pass(minutes);
    }
    const gapsSeen = async () => {
      const { code, stdout } = await gateOn(DATABASE_URL, folder);
      assertEquals(code, 0, stdout);
      return JSON.parse(stdout).gaps.map(({ kind }: { kind: string }) => kind);
    };
    assertEquals(await gapsSeen(), []);
    const killed = await start({ DATABASE_URL }, folder);
    assertEquals(await gapsSeen(), []);
    await killed.stop("SIGKILL"); // as Deno Deploy does after five seconds
    await pass(2);
    assertEquals(await gapsSeen(), ["silent"]);
  }));

test("on Deno Deploy, a server stops in time during a download, with its counts on record", () =>
  inFolder(async (folder) => {
    const DATABASE_URL = await newDatabase();
    const { token, bucket } = await publishIntoBucket(DATABASE_URL, 1 << 26);
    await using server = await start({ DATABASE_URL, ...bucket }, folder);
    using client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(requestHead("GET", `/audio/${token}`));
    await client.read(new Uint8Array(1000)); // then stop reading
    const began = performance.now();
    const { code, log } = await server.stop("SIGINT");
    const seconds = (performance.now() - began) / 1_000;
    assertEquals([code, log.at(-1)?.event], [0, "stop"]);
    assert(seconds < 10, `${seconds} s`); // elsewhere, a server waits for so long
    const { requestsMs, closeMs } = DEPLOY_TIME_LIMITS;
    assert(requestsMs + closeMs < 5_000, "a busy machine may need longer, but a quiet one may not");
    assertEquals(await callsTo(DATABASE_URL, folder), 1);
  }));

test("on Deno Deploy, an item that is served after the signal is on record", () =>
  inFolder(async (folder) => {
    const name = await postgres().createDatabase();
    const { token, bucket } = await publishIntoBucket(postgres().urlOf(name), 1000);
    await using relay = new Relay(store().port);
    await using server = await start({
      ...bucket,
      DATABASE_URL: postgres().urlOf(name),
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${relay.port}`,
    }, folder);
    const asked = Promise.withResolvers<void>();
    relay.onSent = async (text) => {
      if (!text.startsWith("GET /")) return;
      relay.onSent = () => {};
      asked.resolve();
      const delay = DEPLOY_TIME_LIMITS.requestsMs + 300; // so it is not waited for
      await new Promise((resolve) => setTimeout(resolve, delay));
    };
    using client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(requestHead("GET", `/audio/${token}`));
    await asked.promise;
    const { code, log } = await server.stop("SIGINT");
    assertEquals([code, log.at(-1)?.event, log.at(-1)?.["lost"]], [0, "stop", undefined]);
    const record = "SELECT calls, status, ended FROM media_head_usage, media_head_session";
    assertEquals(await postgres().query(record, name), ["1|2xx|stopped"]);
  }));

needing("processes")("a server with content in a folder answers the whole table", async (t) => {
  await using subject = await openLocal();
  await runTable(t, subject, subject.folder);
});

test("a server on PostgreSQL behind a pooler, with content in a bucket, answers the whole table", (t) =>
  inFolder(async (folder) => {
    const prefix = newPrefix();
    const DATABASE_URL = await newDatabase();
    await using subject = await openBucket(store(), await openEngine(DATABASE_URL), prefix);
    const environment = { DATABASE_URL, ...store().environment(prefix) };
    await runTable(t, subject, folder, { environment });
  }));
