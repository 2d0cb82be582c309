/** How storage handles answers that no sound store gives. */

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { RefusedError } from "../../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import type { ByteRange } from "../../../../lib/http/byte_range.ts";
import { BucketContent } from "../../../../lib/storage/content/bucket/content.ts";
import type { ContentStore } from "../../../../lib/storage/content/content_store.ts";
import { ReplacedError } from "../../../../lib/storage/errors.ts";
import type { ContentReference } from "../../../../lib/storage/item.ts";
import { streamOf } from "../../../support/body.ts";
import { needing } from "../../../support/permissions.ts";
import { refusal, response, ScriptedStore, withStore } from "../../../support/scripted_store.ts";

const test = needing("network");

const COPY: ContentReference = { digest: "ab".repeat(32), length: 7 };
const IN_PLACE = { ...COPY, location: "s3://media/a/b+c ü.mp3", validator: '"v1"' };
const RANGE: ByteRange = { first: 2, last: 4 };

const whole = (fields: Record<string, string> = {}) =>
  response(200, { ETag: '"v1"', ...fields }, "content");
const part = (range: string, fields: Record<string, string> = {}, text = "nte") =>
  response(206, { ETag: '"v1"', "Content-Range": range, ...fields }, text);

const open = (content: ContentStore, ...args: Parameters<ContentStore["open"]>) =>
  streamOf(() => content.open(...args));
const textOf = async (stream: Promise<ReadableStream<Uint8Array<ArrayBuffer>>>) =>
  await new Response(await stream).text();

test("open() requests the range wanted, as published and unencoded", async () => {
  await withStore(
    (head) => /^range:/im.test(head) ? part("bytes 2-4/7") : whole(),
    async (content, store) => {
      assertEquals(await textOf(open(content, COPY)), "content");
      assertEquals(await textOf(open(content, IN_PLACE, RANGE)), "nte");
      const [plain = "", ranged = ""] = store.heads;
      assertStringIncludes(plain, `GET /media/p/ab/${COPY.digest} HTTP/1.1\r\n`);
      assertStringIncludes(ranged, "GET /media/a/b%2Bc%20%C3%BC.mp3 HTTP/1.1\r\n");
      const fieldOf = (head: string, name: string) =>
        new RegExp(`^${name}: (.*)\r$`, "im").exec(head)?.[1];
      const fieldsOf = (head: string) =>
        ["accept-encoding", "range", "if-match"].map((name) => fieldOf(head, name));
      assertEquals(fieldsOf(plain), ["identity", undefined, undefined]);
      assertEquals(fieldsOf(ranged), ["identity", "bytes=2-4", '"v1"']);
      // Headers that a proxy may change are not signed.
      const signed = /SignedHeaders=([^,]*),/.exec(fieldOf(ranged, "authorization") ?? "")?.[1];
      assertEquals(signed, "host;x-amz-content-sha256;x-amz-date");
    },
  );
});

const FAULTS: [
  what: string,
  answer: string,
  error: typeof StorageError,
  message: string,
  options?: { wanted?: ContentReference; range?: ByteRange; requests?: number },
][] = [
  ["a 500", refusal(500, "InternalError"), StorageError, "answers 500 (InternalError)", {
    requests: 2,
  }],
  ["a 503", refusal(503, "SlowDown"), StorageError, "answers 503 (SlowDown)", { requests: 2 }],
  ["a 403", refusal(403, "AccessDenied"), StorageError, "answers 403 (AccessDenied)"],
  ["a 404", refusal(404, "NoSuchKey"), StorageError, "is missing"],
  ["a redirect", response(307, { Location: "/x" }), StorageError, "answers 307"],
  [
    "a redirect to another region",
    response(301, { "x-amz-bucket-region": "eu-west-1" }, "<Code>PermanentRedirect</Code>"),
    StorageError,
    'answers 301 (PermanentRedirect); the bucket is in the region "eu-west-1" (AWS_REGION)',
  ],
  [
    "a redirect to another endpoint",
    response(301, {}, "<Code>PermanentRedirect</Code><Endpoint>b.s3.example.com</Endpoint>"),
    StorageError,
    'answers 301 (PermanentRedirect); it asks for the endpoint "b.s3.example.com"',
  ],
  [
    "a redirect by a field",
    response(307, { Location: "https://b.s3.example.com/a?x=1" }),
    StorageError,
    'answers 307; it asks for the endpoint "b.s3.example.com"',
  ],
  [
    "another region of the signature",
    response(400, {}, "<Code>AuthorizationHeaderMalformed</Code><Region>eu&#8238;</Region>"),
    StorageError,
    'answers 400 (AuthorizationHeaderMalformed); the bucket is in the region "eu\\u202e" (AWS',
  ],
  [
    "a refusal that names the region",
    response(403, { "x-amz-bucket-region": "us-east-1" }, "<Code>AccessDenied</Code>"),
    StorageError,
    "answers 403 (AccessDenied)",
  ],
  ["no content", response(204, {}), StorageError, "answers 204"],
  ["no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", StorageError, "cannot be reached", { requests: 2 }],
  ["nothing", "", StorageError, "cannot be reached", { requests: 2 }],
  ["other content", response(200, {}, "contents"), ReplacedError, "8 bytes instead of 7"],
  [
    "content of no length",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ncontent\r\n0\r\n\r\n",
    StorageError,
    "does not state the length",
  ],
  ["a failed condition", refusal(412, "PreconditionFailed"), ReplacedError, "was replaced"],
  ["another ETag", whole({ ETag: '"v2"' }), ReplacedError, "replaced", { wanted: IN_PLACE }],
  ["no ETag", response(200, {}, "content"), ReplacedError, "replaced", { wanted: IN_PLACE }],
  ["a range beyond", refusal(416, "InvalidRange"), ReplacedError, "replaced", { range: RANGE }],
  ["the whole for a range", whole(), StorageError, "answers 200", { range: RANGE }],
  ["a range for the whole", part("bytes 0-6/7"), StorageError, "answers 206"],
  ["another range", part("bytes 1-3/7"), StorageError, "the requested range", { range: RANGE }],
  ["a shorter range", part("bytes 2-4/7", {}, "nt"), StorageError, "the requested range", {
    range: RANGE,
  }],
  ["a range of more", part("bytes 2-4/8"), ReplacedError, "8 bytes instead", { range: RANGE }],
  ["a range of nothing", part("bytes 2-4/*"), StorageError, "the length", { range: RANGE }],
];

for (const [what, answer, type, message, { wanted = COPY, range, requests = 1 } = {}] of FAULTS) {
  test(`open() fails on ${what} before a byte is sent`, () =>
    withStore(() => answer, async (content, store) => {
      const fault = await assertRejects(() => open(content, wanted, range), StorageError);
      assertEquals(fault.name, type === ReplacedError ? "ReplacedError" : "StorageError");
      assertStringIncludes(fault.message, message);
      assertEquals(store.heads.length, requests);
    }));
}

test("open() retries when a connection breaks, or the store asks for it", async () => {
  for (const first of ["", refusal(503, "SlowDown"), refusal(500, "InternalError")]) {
    let isFirst = true;
    await withStore(() => {
      const answer = isFirst ? first : whole();
      isFirst = false;
      return answer;
    }, async (content, store) => {
      assertEquals(await textOf(open(content, COPY)), "content");
      assertEquals(store.heads.length, 2);
    });
  }
});

test("open() fails in time when short content stalls", async () => {
  await withStore(() => response(200, { "Content-Length": "7" }, "con"), async (content, store) => {
    store.isPatient = true;
    await assertRejects(() => open(content, COPY), StorageError, "no answer from the store within");
  });
});

test("open() reports in time that all connections are in use, and takes the next free one", async () => {
  const long = { ...COPY, length: 200_000 };
  const beginning = response(200, { "Content-Length": "200000" }, "con");
  await withStore(() => beginning, async (content, store) => {
    store.isPatient = true;
    const streams = await Promise.all(Array.from({ length: 256 }, () => open(content, long)));
    assertEquals(store.connections, 256);
    const started = performance.now();
    await assertRejects(() => open(content, long), StorageError, "all connections");
    const waited = performance.now() - started;
    assert(waited > 3_900, `${waited} ms`);
    store.script = () => response(200, { "Content-Length": "200000" }); // a HEAD has its own limit
    assertEquals(await content.compare(long), { state: "same" });
    store.script = () => beginning;
    const next = open(content, long);
    await streams[0]?.cancel();
    await (await next).cancel();
    for (const stream of streams) await stream.cancel();
    while (store.connections > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  });
});

test("open() reuses the connection of a download that was read to its end", async () => {
  const clients = new Set<number>();
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(options, (_request, { remoteAddr }) => {
    clients.add((remoteAddr as Deno.NetAddr).port);
    return new Response(new Uint8Array(1_000_000));
  });
  await using store = new ScriptedStore();
  const endpoint = `http://127.0.0.1:${server.addr.port}`;
  const content = new BucketContent({ ...store.settings, endpoint });
  const large = { ...COPY, length: 1_000_000 };
  for (let count = 0; count < 20; count++) {
    assertEquals((await textOf(open(content, large))).length, large.length);
  }
  assert(clients.size <= 4, `${clients.size} connections`);
  await content.close();
});

/** What a HEAD says of an object, and whether a GET is sent, because it may be archived. */
const CLASSES: [fields: Record<string, string>, isAsked: boolean][] = [
  [{}, false],
  ...["STANDARD", "STANDARD_IA", "ONEZONE_IA", "REDUCED_REDUNDANCY", "INTELLIGENT_TIERING"]
    .map((name): [Record<string, string>, boolean] => [{ "x-amz-storage-class": name }, false]),
  ...["GLACIER", "DEEP_ARCHIVE", "GLACIER_IR", "ARCHIVE", "COLD"]
    .map((name): [Record<string, string>, boolean] => [{ "x-amz-storage-class": name }, true]),
  [
    { "x-amz-storage-class": "INTELLIGENT_TIERING", "x-amz-archive-status": "ARCHIVE_ACCESS" },
    true,
  ],
  [{ "x-amz-restore": 'ongoing-request="true"' }, true],
];

test("of an object that may be archived, the first byte decides, as published", async () => {
  const archived = "cannot be read: the store answers 403 (InvalidObjectState)";
  const rows: [answer: string, fault: string | undefined][] = [
    [part("bytes 0-0/7", {}, "c"), undefined],
    [refusal(403, "InvalidObjectState"), archived],
    [refusal(412, "PreconditionFailed"), "was replaced"],
  ];
  for (const [fields, isAsked] of CLASSES) {
    for (const [answer, fault] of isAsked ? rows : [["", undefined] as const]) {
      await withStore(
        (head) => head.startsWith("HEAD") ? whole(fields) : answer,
        async (content, store) => {
          const note = JSON.stringify([fields, answer]);
          const comparing = () => content.compare(IN_PLACE);
          const finding = () => content.statObject(IN_PLACE.location);
          if (fault === undefined) {
            assertEquals(await comparing(), { state: "same" }, note);
            assertEquals((await finding()).length, 7, note);
          } else if (fault === archived) {
            const found = await comparing();
            assertEquals(found.state, "failed", note);
            assertStringIncludes("reason" in found ? found.reason : "", fault, note);
            await assertRejects(finding, RefusedError, fault);
          } else {
            assertEquals((await comparing()).state, "different", note);
            await assertRejects(finding, RefusedError, fault);
          }
          const bytes = store.heads.filter((head) => head.startsWith("GET"));
          assertEquals(bytes.length, isAsked ? 2 : 0, note);
          for (const head of bytes) {
            assertMatch(head, /^range: bytes=0-0\r$/im);
            assertMatch(head, /^if-match: "v1"\r$/im);
          }
        },
      );
    }
  }
});
