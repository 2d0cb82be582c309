import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { publishFile } from "../../lib/publishing/publish.ts";
import { runCheck } from "../../lib/lifecycle/check.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { openLocal } from "../support/local_storage.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { ServerProcess } from "../support/server.ts";

/** Returns ISO 8601 text of an instant some days and a minute from now. */
const inDays = (days: number) =>
  new Date(Date.now() + days * 86_400_000 + 60_000).toISOString().slice(0, 19) + "Z";

needing("processes")(
  "check finds no fault in this server, and describes every phase",
  async (t) => {
    await using subject = await openLocal();
    const { token } = await publishFile(subject.storage, SAMPLE_MP3);
    const [past, soon, later] = [inDays(-40), inDays(10), inDays(220)];
    const [deprecated, removal] = [`deprecated since ${past}`, `removed in 7 months (${later})`];
    const brownout = { BROWNOUTS: `${inDays(-1)}/${soon}` };
    const gone = { SUNSET_AT: past };
    const out = `${deprecated}, unavailable until ${soon}, ${removal}`;
    const rows: [settings: Record<string, string>, expected: string][] = [
      [{ DEPRECATED_AT: soon }, `200, deprecated in 10 days (${soon}), ${removal}`],
      [{}, `200, ${deprecated}, ${removal}`],
      [brownout, `503, ${out}`],
      [{ ...brownout, BROWNOUT_STATUS: "410" }, `410, ${out}`],
      [gone, `410, ${deprecated}, removed 39 days ago (${past})`],
      [{ ...gone, AFTER_SUNSET: "redirect" }, `308, ${deprecated}, removed 39 days ago (${past})`],
    ];
    for (const [changes, expected] of rows) {
      await t.step(expected, async () => {
        const settings = { DEPRECATED_AT: past, SUNSET_AT: later, ...changes };
        await using server = await ServerProcess.start(settings, subject.folder);
        const url = `${server.origin}/audio/${token}`;
        const { text, exitStatus } = await runCheck([url]);
        const [first, successor] = text.split("\n");
        assertEquals(first, `${url}: ${expected}`);
        assertEquals(successor, `  successor-version: ${server.origin}/media/${token}`);
        assert(text.endsWith("\n  no faults"), text);
        assertEquals(exitStatus, 0);
        const malformed = await runCheck([`${server.origin}/audio/malformed`, "--json"]);
        const [result] = JSON.parse(malformed.text);
        assertEquals([result.faults, malformed.exitStatus], [[], 0]);
        assertEquals(result.deprecatedAt, Date.parse(settings.DEPRECATED_AT));
      });
    }
  },
);

needing("processes", program("nginx"))(
  "check names the faults of what others announce",
  async () => {
    await using daemon = await Daemon.start("nginx", ({ port, folder }) =>
      nginx(
        folder,
        `access_log off; server { listen 127.0.0.1:${port};
      location / { add_header Deprecation true; return 200 old; } }`,
      ));
    const url = `http://127.0.0.1:${daemon.port}/`;
    assertEquals(await runCheck([url]), {
      text: `${url}: 200, announces no date
  fault: Deprecation is "true": expected @SECONDS (RFC 9745 §2.1)
  fault: No link has the relation "successor-version" (RFC 5829 §3.6)`,
      exitStatus: 1,
    });
  },
);

needing("network")(
  "check compares HEAD with GET, but not what any two responses differ in",
  async () => {
    let count = 0;
    await using origin = new Origin(({ method, url, headers }) => {
      assertEquals(headers.get("user-agent"), "media-head-check");
      const isHead = method === "HEAD";
      const at = new URL(url).pathname;
      const fields = new Headers({ "X-Request-Id": `${++count}`, "Retry-After": `${9 - count}` });
      if (at === "/fields") fields.set("ETag", `"${method}"`);
      if (at === "/fields") fields.set("Cache-Control", `max-age=${isHead ? 0 : 300}`);
      if (at === "/fields" && !isHead) fields.set("Link", "<a>; rel=b");
      const status = at === "/status" && isHead ? 405 : 200;
      return new Response("text", { status, headers: fields });
    });
    const faultsAt = async (path: string) => {
      const { text, exitStatus } = await runCheck(["--json", origin.url(path)]);
      const [{ faults }] = JSON.parse(text);
      assertEquals(exitStatus, faults.length > 0 ? 1 : 0);
      return faults.map(({ message }: { message: string }) => message);
    };
    assertEquals(await faultsAt("/same"), []);
    assertEquals(await faultsAt("/status"), ["HEAD answers 405, GET 200"]);
    assertEquals(await faultsAt("/fields"), [
      'cache-control is "max-age=0" on HEAD, "max-age=300" on GET',
      'etag is "\\"HEAD\\"" on HEAD, "\\"GET\\"" on GET',
      'link is null on HEAD, "<a>; rel=b" on GET',
    ]);
  },
);

needing("network")(
  "check exits with 2 for wrong usage, or if a URL cannot be reached",
  async () => {
    for (
      const args of [[], ["--json"], ["--colour", "http://a"], ["ftp://a"], ["a"], ["http://"]]
    ) {
      const { text, exitStatus } = await runCheck(args);
      assertEquals(exitStatus, 2, args.join());
      assertStringIncludes(text, "Usage: check [--json] URL...");
    }
    assertEquals((await runCheck(["--help"])).exitStatus, 0);
    await using origin = new Origin(() => new Response("text"));
    const closed = `http://127.0.0.1:${freePort()}/`;
    const { text, exitStatus } = await runCheck([closed, origin.url("/")]);
    assertEquals(exitStatus, 2);
    assertStringIncludes(text, `${closed}: `);
    assertStringIncludes(text, `${origin.url("/")}: 200, announces no date\n  no faults`);
  },
);
