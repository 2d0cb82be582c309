import { assertEquals } from "@std/assert";
import { locationOf, objectKeyIn, urlOf } from "../../../../lib/storage/content/bucket/address.ts";
import type { BucketSettings } from "../../../../lib/storage/content/content_place.ts";

const SETTINGS: BucketSettings = {
  ...{ kind: "bucket", bucket: "media", prefix: "", region: "eu-central-1" },
  ...{ accessKeyId: "key", secretAccessKey: "secret" },
  timeoutMs: 4_500,
};

Deno.test("urlOf() addresses Amazon's buckets by host, and those of an endpoint by path", () => {
  const rows: [endpoint: string | undefined, key: string, url: string][] = [
    [undefined, "a/b", "https://media.s3.eu-central-1.amazonaws.com/a/b"],
    ["http://127.0.0.1:9000", "a/b", "http://127.0.0.1:9000/media/a/b"],
    ["https://s3.test/base", "", "https://s3.test/base/media/"],
    ["https://s3.test", "/a//b ü", "https://s3.test/media//a//b%20%C3%BC"],
    [
      "https://s3.test",
      "a+b?c#d%20!'()*~-_.&=:@$,;",
      "https://s3.test/media/a%2Bb%3Fc%23d%2520%21%27%28%29%2A~-_.%26%3D%3A%40%24%2C%3B",
    ],
  ];
  const dotted = { ...SETTINGS, bucket: "media.example.com" };
  const inPath = "https://s3.eu-central-1.amazonaws.com/media.example.com/a"; // by its certificate
  assertEquals(urlOf(dotted, "a").href, inPath);
  for (const [endpoint, key, url] of rows) {
    assertEquals(urlOf({ ...SETTINGS, endpoint }, key).href, url);
  }
});

Deno.test("objectKeyIn() accepts objects of the bucket that a URL can name", () => {
  for (const key of ["a", "a/b", "/a//b ü", ".a/..b", "a/...", "a?b#c"]) {
    assertEquals(objectKeyIn(locationOf(key, SETTINGS), SETTINGS), key);
  }
  const others = [
    "s3://media",
    "s3://media/",
    "s3://medias/a",
    "s3://other/a",
    "a",
    "S3://media/a",
  ];
  for (const location of [...others, "s3://media/../a", "s3://media/a/.", "s3://media/./a"]) {
    assertEquals(objectKeyIn(location, SETTINGS), undefined, location);
  }
});
