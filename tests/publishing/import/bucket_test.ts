/** Importing from a bucket: content stored under its digest, and objects in place. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { newToken } from "../../../lib/storage/token.ts";
import { newPrefix } from "../../support/bucket_storage.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../../support/paths.ts";
import { needing, shared } from "../../support/permissions.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { BUCKET, S3_STORE, S3Store } from "../../support/s3_store.ts";
import { ServerProcess } from "../../support/server.ts";

const store = shared(S3_STORE, () => S3Store.start());
const test = needing(...S3_STORE);

const MP3_DIGEST = "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa";

test("media import publishes objects in place, and restores an export of a bucket", () =>
  inFolder(async (folder) => {
    const prefix = newPrefix();
    const environment = store().environment(prefix);
    const run = (args: string[], more = {}) => media(folder, args, { ...environment, ...more });
    const content = await Deno.readFile(SAMPLE_MP4);
    const key = `shows/${"ü".repeat(300)}a.mp4`;
    await store().request("PUT", encodeURI(key), content);
    const location = `s3://${BUCKET}/${key}`;
    const sha256 = createHash("sha256").update(content).digest("hex");
    const validator = `"${createHash("md5").update(content).digest("hex")}"`;
    const facts = { location, sha256, validator, length: content.length, type: "video/mp4" };
    const [inPlace, stated] = [newToken(), newToken()];
    const records = [
      { path: SAMPLE_MP3, name: "a.mp3" },
      { sha256: MP3_DIGEST, length: 26186, type: "audio/mpeg", token: newToken() },
      { location, token: inPlace, language: "de" },
      { ...facts, token: stated, name: "b.mp4" },
      { ...facts, token: newToken(), validator: '"x"' },
      { ...facts, token: newToken(), length: 5 },
      { location, token: newToken(), sha256: MP3_DIGEST },
      { location: `s3://${BUCKET}/none.mp4`, token: newToken() },
      { location: `s3://${BUCKET}/${prefix}/bc/${MP3_DIGEST}`, token: newToken() },
      { sha256: "ab".repeat(32), length: 5, type: "audio/mpeg", token: newToken() },
    ];
    await Deno.writeTextFile(
      `${folder}/in`,
      records.map((record) => JSON.stringify(record)).join("\n"),
    );
    const first = await run(["import", `${folder}/in`]);
    assertEquals(first.stdout, "Added: 4; unchanged: 0; refused: 6\n");
    const expected = [
      /^media: line 5: .* is another object than was published$/m,
      /^media: line 6: .* is another object than was published$/m,
      /^media: line 7: ".*a.mp4" has the SHA-256 .*; expected bcd2/m,
      /^media: line 8: .*none.mp4 does not exist$/m,
      /^media: line 9: .* is content that was copied here$/m,
      /^media: line 10: .*content (ab){32} is missing/m,
    ];
    for (const pattern of expected) assertMatch(first.stderr, pattern);
    assertEquals(
      (await run(["import", `${folder}/in`])).stdout,
      "Added: 0; unchanged: 4; refused: 6\n",
    );

    const exported = (await run(["export"])).stdout;
    const listed = exported.trim().split("\n").map((line) => JSON.parse(line));
    for (const token of [inPlace, stated]) {
      const record = listed.find((record) => record.token === token);
      const { token: _, publishedAt: _at, name: _name, language: _language, ...rest } = record;
      assertEquals(rest, { state: "published", kind: "video", ...facts });
    }
    await Deno.writeTextFile(`${folder}/exported`, exported);
    // Moved as documented: the content is copied to another place, which nothing has claimed yet.
    const moved = newPrefix();
    const place = encodeURI(`${moved}/bc/${MP3_DIGEST}`);
    await store().request("PUT", place, await Deno.readFile(SAMPLE_MP3));
    const url = `sqlite:${folder}/other.sqlite`;
    const other = { ...store().environment(moved), DATABASE_URL: url };
    const { code, stderr } = await run(["import", `${folder}/exported`], other);
    assertEquals([code, stderr], [0, ""]);
    assertEquals((await run(["export"], other)).stdout, exported);
    await using server = await ServerProcess.start({ ...environment, ...other }, folder);
    for (const { token } of listed) {
      assertEquals((await requestRaw(server.port, "GET", `/media/${token}`)).status, 200);
    }
  }));

test("media import ends when the store is down, and blames no record", () =>
  inFolder(async (folder) => {
    const environment = store().environment(newPrefix());
    assertEquals((await media(folder, ["publish", SAMPLE_MP3], environment)).code, 0);
    const records = [
      { location: `s3://${BUCKET}/a.mp4`, token: newToken() },
      { sha256: MP3_DIGEST, length: 26186, type: "audio/mpeg", token: newToken() },
    ];
    for (const record of records) {
      await Deno.writeTextFile(`${folder}/in`, JSON.stringify(record));
      await store().stop();
      const { code, stdout, stderr } = await media(folder, ["import", `${folder}/in`], environment);
      await store().launch();
      assertEquals([code, stdout], [
        1,
        "Added: 0; unchanged: 0; refused: 0; stopped before the end: import again to continue\n",
      ]);
      assert(!stderr.includes("line 1"), stderr);
      assertMatch(stderr, /^media: bucket: the store cannot be reached/);
    }
  }));
