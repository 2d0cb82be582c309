import { assertEquals } from "@std/assert";
import { openEngine } from "../../lib/storage/media/sqlite.ts";
import { inFolder, mediaHere } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes");

test("an item at a URL is redirected to, counted and unpublished, and the server sends no requests", () =>
  inFolder(async (folder) => {
    await using origin = new Origin(() => new Response(null, { headers: FIELDS }));
    const publish = async () => {
      const { stdout } = await mediaHere(folder, ["publish", origin.url("/a.mp3"), "--json"]);
      return JSON.parse(stdout);
    };
    const { token, location } = await publish();
    const server = await ServerProcess.start({ DEPRECATED_AT: "2020-01-01" }, folder);
    const { token: later } = await publish(); // while the server runs
    for (const name of [token, later]) {
      for (const path of [`/media/${name}`, `/audio/${name}`]) {
        for (const fields of [{}, { Range: "bytes=0-9" }, { "If-None-Match": '"a"' }]) {
          for (const method of ["GET", "HEAD", "HEAD"]) { // the second HEAD is prepared
            const seen = await requestRaw(server.port, method, path, fields);
            assertEquals([seen.status, field(seen, "location")], [307, location]);
          }
        }
      }
    }
    assertEquals((await requestRaw(server.port, "GET", `/video/${token}`)).status, 404);
    assertEquals((await requestRaw(server.port, "GET", "/healthz")).status, 200);

    assertEquals((await mediaHere(folder, ["unpublish", token])).code, 0);
    await new Promise((resolve) => setTimeout(resolve, 200)); // it shows within 100 ms
    for (const path of [`/media/${token}`, `/audio/${token}`]) {
      for (const method of ["HEAD", "GET"]) {
        const seen = await requestRaw(server.port, method, path);
        assertEquals([seen.status, field(seen, "location")], [410, undefined]);
      }
    }
    await server.stop();
    assertEquals(origin.requests, ["HEAD /a.mp3", "HEAD /a.mp3"]); // both from publishing

    const { ledger, close } = await openEngine(`sqlite:${folder}/catalogue.sqlite`);
    const rows = await Array.fromAsync(
      ledger.usage(""),
      ({ route, method, phase, status, impact, client, calls }) =>
        [route, method, phase, status, impact, client, calls].join(" "),
    );
    await close();
    assertEquals(rows.filter((row) => row.includes("3xx")).toSorted(), [
      "/audio/:token GET deprecated 3xx breaking (no User-Agent) 6",
      "/audio/:token HEAD deprecated 3xx breaking (no User-Agent) 12",
    ]);
  }));

const FIELDS = { "Content-Type": "audio/mpeg", "Content-Length": "7", ETag: '"a"' };
