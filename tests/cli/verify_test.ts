import { assertEquals, assertMatch } from "@std/assert";
import type { LinkedItem } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openIn, openLocal } from "../support/local_storage.ts";
import { inFolder, mediaCommand, mediaHere } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";
import { until } from "../support/within.ts";

const test = needing("processes");

const bytes = (text: string) => new TextEncoder().encode(text);

test("media verify prints rclone's marks, a summary and exit status 1 on any difference", async () => {
  await using origin = new Origin(() => new Response(null, { status: 404 }));
  await using subject = await openLocal();
  const { storage, folder, publish, damage } = subject;
  const put = (content: string) => publish(newMetadata(), bytes(content));
  await put("same");
  const [missing, corrupted] = [await put("missing"), await put("corrupted")];
  const left = await put("left");
  const clean = await mediaHere(folder, ["verify", "--content"]);
  assertEquals([clean.code, clean.stderr, clean.stdout], [
    0,
    "",
    "4 items verified: 4 as published, 0 missing, 0 different, 0 not checked;" +
    " 0 unused\n",
  ]);

  const location = origin.url("/gone.mp3");
  const token = newToken();
  await storage.catalogue.add({ token, kind: "audio", location, publishedAt: 0 });
  await subject.unpublish(left.token, 5000);
  await damage(left, bytes("left"));
  await damage(missing, undefined);
  await damage(corrupted, bytes("corRupted"));
  const quick = await mediaHere(folder, ["verify"]);
  const lines = quick.stdout.trimEnd().split("\n");
  const summary = lines.pop();
  assertEquals([quick.code, quick.stderr], [1, ""]);
  assertEquals(
    lines.sort(),
    [
      `+ ${left.digest}  no item uses this content`,
      `- ${missing.token}  content ${missing.digest} is missing`,
      `- ${token}  "${location}" answers GET with 404`,
    ].sort(),
  );
  assertEquals(
    summary,
    "4 items verified: 2 as published, 2 missing, 0 different, 0 not checked;" +
      " 1 unused",
  );

  const json = await mediaHere(folder, ["verify", "--content", "--json", "--verbose"]);
  const objects = json.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assertEquals(objects.pop(), {
    summary: { same: 1, missing: 2, different: 1, failed: 0, unused: 1, isComplete: true },
  });
  const found = (mark: string) => objects.filter((object) => object.mark === mark);
  assertEquals(["=", "-", "+", "*", "!"].map((mark) => found(mark).length), [1, 2, 1, 1, 0]);
  assertEquals(found("+"), [{ mark: "+", sha256: left.digest }]);
  const { reason, ...members } = found("*")[0];
  assertMatch(reason, /has the SHA-256/);
  const listed = (await mediaHere(folder, ["export"])).stdout.trimEnd().split("\n");
  const published = listed.map((line) => JSON.parse(line))
    .find((object) => object.token === corrupted.token);
  assertEquals(members, { mark: "*", ...published });
});

test("media verify prints a summary when it is stopped", () =>
  inFolder(async (folder) => {
    const end = Promise.withResolvers<Response>();
    await using origin = new Origin(() => end.promise);
    const { media: storage, close } = await openIn(folder);
    const token = newToken();
    const location = origin.url("/");
    await storage.catalogue.add({ token, kind: "audio", location, publishedAt: 0 });
    await close();
    for (
      const [signal, code, args] of [["SIGINT", 130, []], ["SIGTERM", 143, ["--json"]]] as const
    ) {
      const before = origin.requests.length;
      const child = mediaCommand(folder, ["verify", ...args]).spawn();
      await until("a request", () => origin.requests.length > before);
      child.kill(signal);
      const { stdout, stderr, ...status } = await child.output();
      assertEquals(
        [status.code, new TextDecoder().decode(stderr)],
        [code, `media: stopped by ${signal}\n`],
      );
      const said = new TextDecoder().decode(stdout);
      if (args.length === 0) {
        assertMatch(
          said,
          /^0 items verified, stopped before the end: .*; the search for unused content is incomplete/,
        );
      } else assertEquals(JSON.parse(said).summary.isComplete, false);
    }
    end.resolve(new Response());
  }));

test("media verify exits with 1 when nobody reads the differences", async () => {
  await using subject = await openLocal();
  for (let count = 0; count < 40; count++) {
    const location = "http://127.0.0.1:9/";
    const item: LinkedItem = { token: newToken(), kind: "audio", location, publishedAt: 0 };
    await subject.storage.catalogue.add(item);
  }
  const child = mediaCommand(subject.folder, ["verify"]).spawn();
  await child.stdout.cancel();
  assertEquals((await child.status).code, 1);
  assertMatch(await new Response(child.stderr).text(), /^media: [^\n]* \([^\n]*\)\n$/);
});

test("media verify without content checks public URLs, and reports content as not checked", async () => {
  await using origin = new Origin(() => new Response("x"));
  await using subject = await openLocal();
  const location = origin.url("/");
  const run = () => mediaHere(subject.folder, ["verify"], { CONTENT: "none" });
  const item: LinkedItem = { token: newToken(), kind: "audio", location, publishedAt: 0 };
  await subject.storage.catalogue.add(item);
  const links = await run();
  assertEquals([links.code, links.stderr], [0, ""]);
  assertMatch(links.stdout, /^1 item verified: 1 as published, /);
  const { token } = await subject.publish(newMetadata(), bytes("content"));
  const { code, stdout } = await run();
  assertEquals(code, 1);
  assertMatch(stdout, new RegExp(`^! ${token}  CONTENT is "none": only public URLs`));
});
