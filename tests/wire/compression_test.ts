/** Proxies that compress what passes through, as packaged by Debian. */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { newMetadata } from "../storage/storage_suite.ts";
import { apache, apacheModule, haproxy } from "../support/caches.ts";
import { Daemon } from "../support/daemon.ts";
import { openLocal } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

/** Starts HAProxy. Where no type is configured, it compresses all. */
function startHaproxy(origin: number): Promise<Daemon> {
  return Daemon.start("haproxy", (place) => haproxy({ ...place, origin }, "compression algo gzip"));
}

/** Starts Apache, which compresses all, except what more lines of its configuration say. */
function startApache(origin: number, lines = ""): Promise<Daemon> {
  return Daemon.start("apache2", (place) =>
    apache(
      { ...place, origin },
      ["env", "filter", "deflate"],
      `SetOutputFilter DEFLATE\n${lines}`,
    ));
}

/** Serves an item, and passes what to request. */
async function withServer(body: (port: number, targets: string[]) => Promise<void>): Promise<void> {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(20_000));
  await subject.close();
  await using server = await ServerProcess.start({}, subject.folder);
  const targets = [`/media/${token}`, `/audio/${token}`, "/deprecation", "/openapi.json", "/none"];
  await body(server.port, targets);
}

/** Checks that a GET has what its HEAD says. A range, which a HEAD ignores, has as many bytes. */
async function checkParity(port: number, target: string): Promise<void> {
  for (const condition of [{}, { Range: "bytes=0-9999" }, { "If-None-Match": "*" }]) {
    const fields = { "Accept-Encoding": "gzip", ...condition };
    const note = `${target} ${JSON.stringify(condition)}`;
    const get = await requestRaw(port, "GET", target, fields);
    const head = await requestRaw(port, "HEAD", target, fields);
    assertEquals(field(get, "content-encoding"), undefined, note);
    assertStringIncludes(field(get, "cache-control") ?? "", "no-transform", note);
    if (get.status === 206) {
      assertEquals(get.content.length, 10_000, note);
      continue;
    }
    assertEquals(get.status, head.status, note);
    for (const name of ["content-length", "etag", "repr-digest", "cache-control", "vary"]) {
      assertEquals(field(get, name), field(head, name), `${note}: ${name}`);
    }
    if (get.status === 200) {
      assertEquals(String(get.content.length), field(head, "content-length"), note);
    }
  }
}

/** Returns the Content-Encoding of a GET, which may be chunked. */
async function encodingOf(port: number, target: string): Promise<string | null> {
  const response = await fetch(`http://127.0.0.1:${port}${target}`); // Deno asks for gzip
  await response.body?.cancel();
  return response.headers.get("content-encoding");
}

needing("processes", program("haproxy"))(
  "HAProxy that compresses everything leaves every GET as its HEAD says",
  () =>
    withServer(async (origin, targets) => {
      await using proxy = await startHaproxy(origin);
      for (const target of targets) await checkParity(proxy.port, target);
      // It does compress what may be compressed.
      await using plain = Deno.serve(
        { hostname: "127.0.0.1", port: 0, onListen() {} },
        () => new Response("a".repeat(20_000)),
      );
      await using other = await startHaproxy(plain.addr.port);
      assertEquals(await encodingOf(other.port, "/"), "gzip");
    }),
);

needing("processes", program("apache2"), apacheModule("deflate"))(
  "Apache that compresses everything needs the line in README, and with it a GET is as its HEAD says",
  () =>
    withServer(async (origin, targets) => {
      const readme = await Deno.readTextFile(fromRoot("lib/server/README.md"));
      const [, line = ""] = /`(SetEnv [^`]*)`/.exec(readme) ?? [];
      assertMatch(line, /no-gzip/);
      await using proxy = await startApache(origin, line);
      for (const target of targets) await checkParity(proxy.port, target);
      await using without = await startApache(origin);
      const [target = ""] = targets;
      assertEquals(await encodingOf(without.port, target), "gzip");
    }),
);
