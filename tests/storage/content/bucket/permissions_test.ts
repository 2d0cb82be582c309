/** The access to the bucket that a server and a publisher need. */

import { assertEquals, assertMatch } from "@std/assert";
import { newPrefix } from "../../../support/bucket_storage.ts";
import { inFolder, media } from "../../../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../../../support/paths.ts";
import { needing } from "../../../support/permissions.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { Relay } from "../../../support/relay.ts";
import { READER_KEY, S3_STORE, S3Store } from "../../../support/s3_store.ts";
import { ServerProcess } from "../../../support/server.ts";

needing(...S3_STORE)(
  "a server reads and lists only, and no command deletes an object",
  () =>
    inFolder(async (folder) => {
      await using store = await S3Store.start();
      await store.request("PUT", "?acl", undefined, { "x-amz-acl": "public-read" });
      const methods = new Set<string>();
      await using relay = new Relay(store.port);
      relay.onSent = (text) => {
        for (const [, method = ""] of text.matchAll(/^([A-Z]+) \/media\S* HTTP\/1\.1\r$/gm)) {
          methods.add(method);
        }
      };
      const publisher = {
        ...store.environment(newPrefix()),
        AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${relay.port}`,
      };
      const reader = { ...publisher, AWS_ACCESS_KEY_ID: READER_KEY };
      const run = (environment: Record<string, string>, ...args: string[]) =>
        media(folder, args, environment);

      const { token } = JSON.parse((await run(publisher, "publish", SAMPLE_MP3, "--json")).stdout);
      assertEquals((await run(publisher, "publish", SAMPLE_MP3, "--again")).code, 0);
      await using server = await ServerProcess.start(reader, folder);
      assertEquals((await requestRaw(server.port, "GET", `/media/${token}`)).status, 200);
      assertEquals((await run(reader, "verify", "--content")).code, 0);
      const refused = await run(reader, "publish", SAMPLE_MP4);
      assertEquals(refused.code, 1);
      assertMatch(refused.stderr, /rejects content \w+: the store answers 403 \(AccessDenied\)\n$/);

      const tombstone = { token, state: "unpublished", kind: "audio" };
      await Deno.writeTextFile(`${folder}/in`, JSON.stringify(tombstone));
      const imported = await run(reader, "import", `${folder}/in`);
      assertEquals(imported.stdout, "Added: 1 (1 of them unpublished); unchanged: 0; refused: 0\n");
      assertMatch(
        imported.stderr,
        /^media: unpublishing .* s3:.*\nmedia: another item uses s3:.*\n$/,
      );
      const [other = ""] =
        /\S{36}(?= +audio +published)/.exec((await run(reader, "list")).stdout) ??
          [];
      assertEquals((await run(reader, "unpublish", other)).code, 0);
      assertEquals([...methods].sort(), ["GET", "HEAD", "PUT"]);
    }),
);
