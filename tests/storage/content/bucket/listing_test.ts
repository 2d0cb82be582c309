/** Listing a bucket page by page, in any spelling that a store uses. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import { needing } from "../../../support/permissions.ts";
import { refusal, response, withStore } from "../../../support/scripted_store.ts";

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

test("list() yields all our content, page by page", () => {
  const pages: Record<string, string> = {
    "p/": page(["p/media-head", "p/0f"], ["p/0f/", "p/ab/", "p/AB/"], "a&amp;b+/="),
    "p/ a&b+/=": page([], ["p%2Fcd%2F", "p/abc/"]),
    "p/0f/0f": page([`p/0f/${digest("0f1")}`], [], "2"),
    "p/0f/0f 2": page([`p/0f/${digest("0f2")}`, `p/0f/${digest("0f3")}.bak`], ["p/0f/0f/"]),
    "p/ab/ab": page([`p%2Fab%2F${digest("ab")}`, "p/ab/abc%20d"], []),
    "p/cd/cd": page([], []),
  };
  return withStore((head) => {
    const query = new URL(head.split(" ")[1] ?? "", "http://test").searchParams;
    assertEquals([query.get("list-type"), query.get("delimiter")], ["2", "/"]);
    const asked = `${query.get("prefix")} ${query.get("continuation-token") ?? ""}`.trim();
    return pages[asked] ?? refusal(400, "Unexpected");
  }, async (content, { heads }) => {
    assertEquals(await Array.fromAsync(content.list()), ["0f1", "0f2", "ab"].map(digest));
    assertEquals(heads.length, 6);
    const hasPlus = heads.some((head) => head.split("\r\n")[0]?.includes("+"));
    assert(!hasPlus, "a plus may be a space");
  });
});

test("list() fails when the store refuses, or answers with something else", async () => {
  const rows: [answer: string, status: number][] = [
    [refusal(403, "AccessDenied"), 403],
    [response(200, {}, "<html>Sign in</html>"), 200],
    [response(200, {}, "<ListBucketResult><Key>p/ab"), 200],
  ];
  for (const [answer, status] of rows) {
    const message = `"s3://media/p" (CONTENT) cannot be listed: the store answers ${status}`;
    await withStore(() => answer, async (content) => {
      await assertRejects(() => Array.fromAsync(content.list()), StorageError, message);
    });
  }
});
