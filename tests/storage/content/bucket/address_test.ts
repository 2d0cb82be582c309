import { assertEquals } from "@std/assert";
import {
  locationOf,
  objectKeyIn,
  readingOf,
  urlOf,
} from "../../../../lib/storage/content/bucket/address.ts";
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

Deno.test("urlOf() takes an endpoint for the bucket's own if its host is the bucket and a domain", () => {
  const rows: [endpoint: string, bucket: string, url: string][] = [
    ["https://media.oss.test", "media", "https://media.oss.test/a"],
    ["https://media.s3.localhost:4566/x", "media", "https://media.s3.localhost:4566/x/a"],
    ["https://my.shows.oss.test", "my.shows", "https://my.shows.oss.test/a"],
    [
      "https://shows-1250000000.cos.test",
      "shows-1250000000",
      "https://shows-1250000000.cos.test/a",
    ],
    // These stay what they are.
    ["http://minio:9000", "minio", "http://minio:9000/minio/a"],
    ["http://media.minio:9000", "media", "http://media.minio:9000/media/a"],
    ["http://media.localhost:9000", "media", "http://media.localhost:9000/media/a"],
    ["https://media-store.example", "media", "https://media-store.example/media/a"],
    ["https://media.example", "media", "https://media.example/media/a"],
    ["https://my.shows.oss.test", "shows", "https://my.shows.oss.test/shows/a"],
    ["https://cdn.example.com", "media", "https://cdn.example.com/media/a"],
    ["http://127.0.0.1:9000", "127", "http://127.0.0.1:9000/127/a"],
    ["http://10.0.3.1:9000", "10.0", "http://10.0.3.1:9000/10.0/a"],
    ["http://[::1]:9000", "media", "http://[::1]:9000/media/a"],
    // As an address of the store, it has the bucket in its path.
    ["https://media.example.com/media", "media", "https://media.example.com/media/a"],
  ];
  for (const [endpoint, bucket, url] of rows) {
    assertEquals(urlOf({ ...SETTINGS, bucket, endpoint }, "a").href, url);
  }
});

Deno.test("readingOf() names the other reading of an endpoint, if there is one", () => {
  const rows: [endpoint: string | undefined, code: string, other: string | undefined][] = [
    ["https://oss.test", "SecondLevelDomainForbidden", "https://media.oss.test"],
    ["https://cos.test:81/x", "PathStyleDomainForbidden", "https://media.cos.test:81/x"],
    ["https://obs.test", "VirtualHostDomainRequired", "https://media.obs.test"],
    ["https://obs.test", "NoSuchBucket", "https://media.obs.test"],
    ["https://obs.test", "AccessDenied", undefined],
    ["http://minio:9000", "NoSuchBucket", undefined],
    ["http://127.0.0.1:9000", "NoSuchBucket", undefined],
    [undefined, "NoSuchBucket", undefined],
    ["https://media.example.com", "NoSuchBucket", "https://media.example.com/media"],
    ["https://media.example.com", "AccessDenied", "https://media.example.com/media"],
  ];
  for (const [endpoint, code, other] of rows) {
    const reading = readingOf({ ...SETTINGS, endpoint }, code);
    assertEquals(/write "(.*)"$/.exec(reading)?.[1], other, `${endpoint} ${code}`);
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
