/** How storage handles answers that no sound store gives. */

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import type { ByteRange } from "../../../../lib/http/byte_range.ts";
import { BucketContent } from "../../../../lib/storage/content/bucket/content.ts";
import type { Comparison, ContentStore } from "../../../../lib/storage/content/content_store.ts";
import { ReplacedError, SingleReadError } from "../../../../lib/storage/errors.ts";
import type { ContentReference, FailedRead } from "../../../../lib/storage/item.ts";
import { streamOf } from "../../../support/body.ts";
import { needing } from "../../../support/permissions.ts";
import { refusal, response, ScriptedStore, withStore } from "../../../support/scripted_store.ts";
import { until } from "../../../support/within.ts";

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
    "a refusal for the time, without a date",
    refusal(403, "RequestTimeTooSkewed"),
    StorageError,
    "answers 403 (RequestTimeTooSkewed); this machine's clock differs from the store's",
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
  ["the whole for a range", whole(), SingleReadError, "ignores the range", { range: RANGE }],
  ["a range for the whole", part("bytes 0-6/7"), StorageError, "answers 206"],
  ["another range", part("bytes 1-3/7"), StorageError, "the requested range", { range: RANGE }],
  ["a shorter range", part("bytes 2-4/7", {}, "nt"), StorageError, "the requested range", {
    range: RANGE,
  }],
  ["a range of more", part("bytes 2-4/8"), ReplacedError, "8 bytes instead", { range: RANGE }],
];

for (const [what, answer, type, message, { wanted = COPY, range, requests = 1 } = {}] of FAULTS) {
  test(`open() fails on ${what} before a byte is sent`, () =>
    withStore(() => answer, async (content, store) => {
      const fault = await assertRejects(() => open(content, wanted, range), StorageError);
      assertEquals(fault.name, type.name);
      assertStringIncludes(fault.message, message);
      assertEquals(store.heads.length, requests);
    }));
}

test("open() accepts a range of content whose total length the store does not know", () =>
  withStore(() => part("bytes 2-4/*"), async (content) => {
    assertEquals(await textOf(open(content, COPY, RANGE)), "nte");
  }));

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
    await assertRejects(() => open(content, COPY), StorageError, "no answer from ");
  });
});

test("open() reports in time that all connections are in use, and takes the next free one", async () => {
  const long = { ...COPY, length: 200_000 };
  const beginning = response(200, { "Content-Length": "200000" }, "con");
  await withStore(() => beginning, async (content, store) => {
    store.isPatient = true;
    const streams: Awaited<ReturnType<typeof open>>[] = [];
    while (streams.length < 256) { // a few at a time, since each has its own limit
      streams.push(...await Promise.all(Array.from({ length: 16 }, () => open(content, long))));
    }
    assertEquals(store.connections, 256);
    const started = performance.now();
    await assertRejects(() => open(content, long), SingleReadError, "all connections");
    const waited = performance.now() - started;
    assert(waited > 3_900, `${waited} ms`);
    store.script = () => part("bytes 0-0/200000", {}, "c"); // a check has its own limit
    assertEquals(await content.compare(long), { state: "same" });
    store.script = () => beginning;
    const next = open(content, long);
    await streams[0]?.cancel();
    await (await next).cancel();
    for (const stream of streams) await stream.cancel();
    await until("the connections to close", () => store.connections === 0);
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

const CHUNKED = 'HTTP/1.1 200 OK\r\nETag: "v1"\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n';
const byteOf = (total: string, fields = {}) => part(`bytes 0-0/${total}`, fields, "c");
const UNREADABLE = "cannot be read: the store answers";
const NO_LENGTH = "the store does not state the length";

/**
 * The answers to the GETs of a check, in order; what follows from them, with the reason, or a part of
 * it; and why the object cannot be published in place, if not for that reason. It is null if it can.
 */
type Row = [
  what: string,
  answers: readonly string[],
  state: Comparison["state"],
  reason: string,
  refusal?: string | null,
];

const ANSWERS: Row[] = [
  ["its first byte", [byteOf("7")], "same", "", null],
  ["all of it, which is not read", [whole()], "same", "", null],
  ["a range of an unknown total, then the whole", [byteOf("*"), whole()], "same", "", null],
  [
    "a range without Content-Range, then the whole",
    [response(206, { ETag: '"v1"' }, "c"), whole()],
    "same",
    "",
    null,
  ],
  [
    "no length in either form",
    [byteOf("*"), CHUNKED],
    "failed",
    NO_LENGTH,
    "cannot be published: the store states no length",
  ],
  ["no length", [CHUNKED], "failed", NO_LENGTH, "no length"],
  ["another total", [byteOf("8")], "different", "has 8 bytes instead of 7", null],
  [
    "another length",
    [response(200, { ETag: '"v1"' }, "contents")],
    "different",
    "has 8 bytes instead of 7",
    null,
  ],
  ["another ETag", [byteOf("7", { ETag: '"v2"' })], "different", "was replaced", null],
  ["412", [refusal(412, "PreconditionFailed")], "different", "was replaced", "answers 412"],
  [
    "416, because it is empty",
    [refusal(416, "InvalidRange")],
    "different",
    "was replaced",
    "is empty",
  ],
  [
    "200 and no byte, because it is empty",
    [response(200, { ETag: '"v1"' })],
    "different",
    "has 0 bytes instead of 7",
    "is empty",
  ],
  ["404", [refusal(404, "NoSuchKey")], "missing", "is missing", "does not exist"],
  [
    "that it is archived",
    [refusal(403, "InvalidObjectState")],
    "failed",
    `${UNREADABLE} 403 (InvalidObjectState)`,
  ],
  [
    "that its key is disabled",
    [refusal(400, "KMS.DisabledException")],
    "failed",
    `${UNREADABLE} 400 (KMS.DisabledException)`,
  ],
  [
    "that its parts cannot be read",
    [refusal(503, "SlowDownRead"), refusal(503, "SlowDownRead")],
    "failed",
    `${UNREADABLE} 503 (SlowDownRead)`,
  ],
  [
    "the promise of a byte, and no byte",
    [part("bytes 0-0/7", { "Content-Length": "1" }, "")],
    "failed",
    "cannot be read",
    null,
  ],
];

for (const [what, answers, state, reason, refusal = reason] of ANSWERS) {
  test(`of an object, a check is answered ${what}`, async () => {
    let at = 0;
    const script = (head: string) =>
      head.includes("/media-head ") ? response(200, {}, "name") : answers[at++] ?? "";
    await withStore(script, async (content, store) => {
      const found = await content.compare(IN_PLACE);
      assertEquals(found.state, state);
      assertStringIncludes("reason" in found ? found.reason : "", reason);
      const heads = store.heads.filter((head) => !head.includes("/media-head "));
      assertEquals(heads.length, answers.length);
      for (const [index, head] of heads.entries()) {
        assertMatch(head, /^GET \/media\/a\/b/);
        assertMatch(head, /^if-match: "v1"\r$/im);
        const isWhole = index > 0 && !what.startsWith("that");
        assertEquals(/^range: (.*)\r$/im.exec(head)?.[1], isWhole ? undefined : "bytes=0-0");
      }
      at = 0;
      const finding = () => content.statObject(IN_PLACE.location);
      if (refusal === null) {
        assertEquals((await finding()).validator, what === "another ETag" ? '"v2"' : '"v1"');
      } else assertStringIncludes((await assertRejects(finding, Error)).message, refusal);
    });
  });
}

test("a read that failed is repeated: up to its head if it is long, and else to its end", async () => {
  const long = { ...IN_PLACE, length: 1_000_000 };
  const range = { first: 5, last: 900_000 };
  const cut = (text: string) =>
    response(text.includes("range:") ? 206 : 200, {
      ETag: '"v1"',
      "Content-Length": text.includes("range:") ? "899996" : "1000000",
      "Content-Range": "bytes 5-900000/1000000",
    }, "con");
  const rows: [
    content: ContentReference,
    read: FailedRead,
    answer: string | undefined,
    sound: boolean,
  ][] = [
    [long, {}, undefined, true],
    [long, { range }, undefined, true],
    [long, {}, refusal(403, "AccessDenied"), false],
    [long, { range }, refusal(403, "AccessDenied"), false],
    [IN_PLACE, {}, whole(), true],
    [IN_PLACE, {}, response(200, { ETag: '"v1"', "Content-Length": "7" }, "con"), false],
    [IN_PLACE, { range: RANGE }, part("bytes 2-4/7"), true],
    [IN_PLACE, { range: RANGE }, part("bytes 2-4/7", { "Content-Length": "3" }, "n"), false],
    [IN_PLACE, { range: { first: 6, last: 6 } }, part("bytes 6-6/7", {}, "t"), true],
  ];
  for (const [wanted, read, answer, isSound] of rows) {
    await withStore((head) => {
      if (head.startsWith("GET /media/p/media-head ")) return response(200, {}, "name");
      return answer ?? cut(head);
    }, async (content, store) => {
      const { state } = await content.compare(wanted, read);
      assertEquals(state, isSound ? "same" : "failed", `${JSON.stringify(read)} ${answer}`);
      const [head = ""] = store.heads;
      const sent = /^range: bytes=(.*)\r$/im.exec(head)?.[1];
      assertEquals(sent, read.range && `${read.range.first}-${read.range.last}`);
    });
  }
});
