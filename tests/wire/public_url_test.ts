import { assertEquals } from "@std/assert";
import { publishUrl } from "../../lib/publishing/publish_url.ts";
import { Cdn } from "../support/cdn.ts";
import { openLocal } from "../support/local_storage.ts";
import { openEngine } from "../../lib/storage/database/sqlite/engine.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes");

test("an item at a URL is redirected to, counted and unpublished, and the server sends no requests", () =>
  inFolder(async (folder) => {
    await using origin = new Origin(() => new Response(null, { headers: FIELDS }));
    const publish = async () => {
      const { stdout } = await media(folder, ["publish", origin.url("/a.mp3"), "--json"]);
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

    assertEquals((await media(folder, ["unpublish", token])).code, 0);
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

needing("processes", program("curl"), program("nginx"))(
  "curl follows redirects to a public URL by HEAD and GET, with ranges and conditions",
  async () => {
    const content = await Deno.readFile(SAMPLE_MP3);
    await using cdn = await Cdn.start({ "a.mp3": content });
    await using subject = await openLocal();
    const item = await publishUrl(subject.storage, cdn.url("/a.mp3"));
    await using server = await ServerProcess.start({}, subject.folder);
    const url = `${server.origin}/audio/${item.token}`;
    const curl = async (...args: string[]) => {
      const { stdout } = await new Deno.Command("curl", { args: ["-sSL", ...args, url] }).output();
      return stdout;
    };
    /** Returns the statuses and fields of every response on the way, without dates. */
    const heads = async (...args: string[]) =>
      new TextDecoder().decode(await curl(...args)).replaceAll(/^date:.*\n/gim, "")
        .split("\r\n\r\n").filter((head) => head !== "");
    const rows: [args: string[], status: number, length: number][] = [
      [[], 200, content.length],
      [["-r", "0-9"], 206, 10],
      [["-H", `If-None-Match: ${item.validator}`], 304, 0],
      [["-H", 'If-Match: "other"'], 412, NaN],
    ];
    for (const [args, status, length] of rows) {
      const get = await heads(...args, "-o", "/dev/null", "-D", "-");
      const statuses = get.map((head) => Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]));
      assertEquals(statuses, [307, status], args.join(" "));
      if (status < 400) assertEquals((await curl(...args)).length, length);
      if (status === 206) continue; // for GET only
      assertEquals((await heads(...args, "-I"))[0], get[0], args.join(" "));
    }
    assertEquals((await heads("-I")).length, 2);
    assertEquals(await curl(), content);
  },
);
