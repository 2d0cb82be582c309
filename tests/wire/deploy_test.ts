/**
 * A server on Deno Deploy, as documented: a database in DATABASE_URL, behind a pooler; no
 * persistent disk; SIGINT, then SIGKILL five seconds later.
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import { newPrefix, settingsOf } from "../support/bucket_storage.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { publishTo } from "../support/media_subject.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../support/pgbouncer.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { PostgresServer } from "../support/postgres.ts";
import { field, requestHead, requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";

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

async function newDatabase(): Promise<string> {
  return postgres().urlOf(await postgres().createDatabase(), bouncer().port);
}

test("on Deno Deploy, a server serves public URLs, and content, too, once it has a bucket", () =>
  inFolder(async (folder) => {
    const DATABASE_URL = await newDatabase();
    const bucket: Record<string, string> = { DATABASE_URL, ...store().environment(newPrefix()) };
    const linksOnly = { DATABASE_URL, CONTENT: "none" };
    const publish = async (source: string, environment: Record<string, string>) => {
      const result = await media(folder, ["publish", "--json", source], environment);
      assertEquals(result.code, 0, result.stderr);
      return JSON.parse(result.stdout).token as string;
    };
    const sample = await Deno.readFile(SAMPLE_MP3);
    await using origin = new Origin(() =>
      new Response(sample, { headers: { "Content-Type": "audio/mpeg" } })
    );

    await using first = await start({ DATABASE_URL }, folder);
    const linked = await publish(origin.url("/a.mp3"), linksOnly);
    const refused = await media(folder, ["publish", SAMPLE_MP3], linksOnly);
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

    const one = await first.stop("SIGINT");
    const other = await second.stop("SIGINT");
    assertEquals([one.code, other.code], [0, 0]);
    const created = 'created the catalogue in "postgres://';
    assertEquals(String(one.log[0]?.["message"]).slice(0, created.length), created);
    assertEquals([one.log[1]?.["content"], other.log[0]?.["content"]], [
      "none: public URLs only",
      bucket["CONTENT"],
    ]);
    const usage = await media(folder, ["usage", "--days", "1", "--json"], linksOnly);
    const { routes } = JSON.parse(usage.stdout);
    assertEquals(routes[0].calls, 8, usage.stdout);
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

test("on Deno Deploy, a server stops in time during a download, and flushes its counts", () =>
  inFolder(async (folder) => {
    const prefix = newPrefix();
    const DATABASE_URL = await newDatabase();
    const engine = await openEngine(DATABASE_URL);
    const storage = new MediaStorage(
      engine,
      new BucketContent(settingsOf(store(), prefix)),
    );
    await storage.prepare();
    const item = await publishTo(storage, newMetadata(), new Uint8Array(1 << 26).fill(1));
    await storage.close();

    await using server = await start({ DATABASE_URL, ...store().environment(prefix) }, folder);
    using client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(requestHead("GET", `/audio/${item.token}`));
    await client.read(new Uint8Array(1000)); // then stop reading
    const began = performance.now();
    const { code, log } = await server.stop("SIGINT");
    const seconds = (performance.now() - began) / 1_000;
    assertEquals([code, log.at(-1)?.event], [0, "stop"]);
    assert(seconds < 8, `${seconds} s`); // five at most on an idle machine
    const usage = await media(folder, ["usage", "--days", "1", "--json"], {
      ...{ DATABASE_URL, CONTENT: "none" },
    });
    assertEquals(JSON.parse(usage.stdout).routes[0].calls, 1, usage.stdout);
  }));
