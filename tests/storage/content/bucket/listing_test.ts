/** Listing a bucket page by page, in any spelling that a store uses. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { BucketContent } from "../../../../lib/storage/content/bucket/content.ts";
import { openMemoryEngine } from "../../../support/memory_storage.ts";
import { StorageError } from "../../../../lib/storage/errors.ts";
import { needing } from "../../../support/permissions.ts";
import { refusal, response, ScriptedStore } from "../../../support/scripted_store.ts";

const test = needing("network");

const digest = (start: string) => start.padEnd(64, "0");

/** A page of keys and common prefixes. */
const page = (keys: string[], folders: string[], next?: string) =>
  response(
    200,
    {},
    `<?xml version="1.0"?><ListBucketResult><Prefix>p/</Prefix>${
      keys.map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join("")
    }${
      folders.map((folder) => `<CommonPrefixes>\n <Prefix>${folder}</Prefix></CommonPrefixes>`)
        .join("")
    }${next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`}` +
      "</ListBucketResult>\n",
  );

/** Returns the query of a request. */
function queryOf(head: string): URLSearchParams {
  return new URL(head.split(" ")[1] ?? "", "http://test").searchParams;
}

test("list() yields all our content, page by page", async () => {
  await using store = new ScriptedStore();
  store.script = (head) => {
    const query = queryOf(head);
    assertEquals([query.get("list-type"), query.get("delimiter")], ["2", "/"]);
    const asked = `${query.get("prefix")} ${query.get("continuation-token") ?? ""}`.trim();
    const pages: Record<string, string> = {
      "p/": page(["p/media-head", "p/0f"], ["p/0f/", "p/ab/", "p/AB/"], "a&amp;b+/="),
      "p/ a&b+/=": page([], ["p%2Fcd%2F", "p/abc/"]),
      "p/0f/0f": page([`p/0f/${digest("0f1")}`], [], "2"),
      "p/0f/0f 2": page([`p/0f/${digest("0f2")}`, `p/0f/${digest("0f3")}.bak`], ["p/0f/0f/"]),
      "p/ab/ab": page([`p%2Fab%2F${digest("ab")}`, "p/ab/abc%20d"], []),
      "p/cd/cd": page([], []),
    };
    return pages[asked] ?? refusal(400, "Unexpected");
  };
  await using engine = await openMemoryEngine();
  const content = new BucketContent(store.settings, engine);
  const digests = await Array.fromAsync(content.list());
  await content.close?.();
  assertEquals(digests, ["0f1", "0f2", "ab"].map(digest));
  assertEquals(store.heads.length, 6);
  assert(
    store.heads.every((head) => !head.split("\r\n")[0]?.includes("+")),
    "a plus may be a space",
  );
});

test("list() fails when the store refuses, or answers with something else", async () => {
  await using store = new ScriptedStore();
  await using engine = await openMemoryEngine();
  const content = new BucketContent(store.settings, engine);
  const rows: [answer: string, message: string][] = [
    [
      refusal(403, "AccessDenied"),
      '"s3://media/p" (CONTENT) cannot be listed: the store answers 403',
    ],
    [
      response(200, {}, "<html>Sign in</html>"),
      "(CONTENT) cannot be listed: the store answers 200",
    ],
    [response(200, {}, "<ListBucketResult><Key>p/ab"), "(CONTENT) cannot be listed: the store"],
  ];
  for (const [answer, message] of rows) {
    store.script = () => answer;
    await assertRejects(() => Array.fromAsync(content.list()), StorageError, message);
  }
  await content.close?.();
});
