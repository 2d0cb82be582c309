import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { gzipSync } from "node:zlib";
import { InterruptedError } from "../../lib/cli/interruption.ts";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { publishUrl, type PublishUrlOptions } from "../../lib/publishing/publish_url.ts";
import type { LinkedItem } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openMemory } from "../support/memory_storage.ts";
import { type Answer, Origin } from "../support/origin.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { answerAll, HandBackend, type Wire } from "../support/wire.ts";
import { flv } from "./containers.ts";
import { LONG_TAG } from "./formats.ts";

const test = needing("environment", "files", "network");

type Fields = Readonly<Record<string, string>>;

/** Answers HEAD with some fields, and GET of the first byte with others. */
const withHead = (fields: Fields): Answer => ({ method, headers }) =>
  method === "HEAD"
    ? new Response(null, { headers: fields })
    : headers.get("range") === "bytes=0-0"
    ? new Response("x", { status: 206, headers: { "Content-Type": "text/html", ETag: '"get"' } })
    : new Response("expected a range", { status: 500 });

/** Answers HEAD with some fields, and GET with a status. */
const onlyHead = (headers: Fields, status: number): Answer => ({ method }) =>
  method === "HEAD" ? new Response(null, { headers }) : new Response("", { status });

/** Answers HEAD with a status only, and GET with content. */
const withContent =
  (content: Uint8Array<ArrayBuffer>, headers: Fields, head = 200): Answer => ({ method }) =>
    method === "HEAD" ? new Response(null, { status: head }) : new Response(content, { headers });

/** MP4 whose tracks are described beyond what is read. */
function describedAtItsEnd(): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(200_000);
  const view = new DataView(content.buffer);
  view.setUint32(0, 24);
  content.set(new TextEncoder().encode("ftypisom\0\0\0\0isomiso2"), 4);
  view.setUint32(24, content.length - 24);
  content.set(new TextEncoder().encode("mdat"), 28);
  return content;
}

const SOUND = new Uint8Array(flv(4, 8));
/** Its header names video, too. */
const SOUND_OR_FILM = new Uint8Array(flv(5, 8));
const NO_TYPE = { "Content-Type": "" };
const OCTETS = { "Content-Type": "application/octet-stream" };
const SEVEN_BYTES = { "Content-Type": "audio/mpeg", "Content-Length": "7" };
const DATE = "Sun, 09 Sep 2001 01:46:40 GMT";

test("publishUrl() keeps what HEAD states, or else what GET states or begins with", async () => {
  const mp3 = await Deno.readFile(SAMPLE_MP3);
  const mp4 = await Deno.readFile(SAMPLE_MP4);
  const read = { kind: "audio", type: "audio/mpeg", length: mp3.length } as const;
  /** Answers with a range of longer content, if requested. */
  const part = (fields: Fields): Answer => ({ method, headers }) =>
    method === "HEAD"
      ? new Response(null, { headers: { "Content-Type": "audio/mpeg", "Content-Length": "0" } })
      : headers.get("range") === "bytes=0-65535"
      ? new Response(mp3, { status: 206, headers: { "Content-Type": "audio/mpeg", ...fields } })
      : new Response("expected a range", { status: 500 });
  const range = `bytes 0-${mp3.length - 1}`;
  const encoded = { "Content-Encoding": "gzip" };
  const gzip = gzipSync("content");
  const unfit = { "Content-Type": `audio/mpeg; x=${"y".repeat(300)}`, ETag: '"\xe9"' };

  type Row = [what: string, answer: Answer, item: Partial<LinkedItem>, options?: PublishUrlOptions];
  const rows: Row[] = [
    [
      "all",
      withHead({
        ...SEVEN_BYTES,
        "Content-Type": "video/mp4",
        ETag: 'W/"a"',
        "Last-Modified": DATE,
      }),
      { kind: "video", type: "video/mp4", length: 7, validator: 'W/"a"' },
    ],
    [
      "a date, without an ETag",
      withHead({ ...SEVEN_BYTES, "Content-Type": "Audio/MPEG", "Last-Modified": DATE }),
      { kind: "audio", type: "Audio/MPEG", length: 7, validator: DATE },
    ],
    [
      "content of unknown length",
      () => new Response(new Blob([mp3]).stream(), { headers: { "Content-Type": "audio/mpeg" } }),
      { kind: "audio", type: "audio/mpeg" },
    ],
    [
      "content that is encoded in spite of the request",
      ({ headers }) =>
        headers.get("accept-encoding") === "identity"
          ? new Response(gzip, { headers: { "Content-Type": "audio/wav", ...encoded } })
          : new Response("expected Accept-Encoding: identity", { status: 500 }),
      { kind: "audio", type: "audio/wav" },
    ],
    [
      "a generic type, with a stated kind",
      withHead({ ...SEVEN_BYTES, ...OCTETS }),
      { kind: "audio", type: "application/octet-stream", length: 7 },
      { kind: "audio" },
    ],
    [
      "a generic type, where another is stated",
      withHead({ ...SEVEN_BYTES, "Content-Type": "text/plain" }),
      { kind: "video", type: "text/plain", length: 7 },
      { type: "video/mp4" },
    ],
    [
      "a wrong type, where another is stated",
      withHead({ ...SEVEN_BYTES, "Content-Type": "video/mp4" }),
      { kind: "audio", type: "video/mp4", length: 7 },
      { type: "audio/mp4", kind: "audio" },
    ],
    ["no type at all", withContent(mp3, NO_TYPE), { kind: "audio", length: mp3.length }],
    [
      "a generic type",
      withContent(mp4, OCTETS),
      { kind: "video", type: "application/octet-stream", length: mp4.length },
    ],
    [
      "sound in a container for either",
      withContent(SOUND, OCTETS),
      { kind: "audio", type: "application/octet-stream", length: SOUND.length },
    ],
    [
      "a tag of which only the beginning is read",
      ({ method }) =>
        method === "HEAD" ? new Response(null, { headers: NO_TYPE }) : new Response(
          LONG_TAG.subarray(0, 65_536),
          { status: 206, headers: { ...NO_TYPE, "Content-Range": "bytes 0-65535/900000" } },
        ),
      { kind: "audio", length: 900_000 },
    ],
    ...[403, 404, 405, 501].map((status): Row => [
      `HEAD refused with ${status}`,
      withContent(mp3, { "Content-Type": "audio/mpeg" }, status),
      read,
    ]),
    [
      "a HEAD whose length is 0, and a part of the content",
      part({ "Content-Range": `${range}/1000000`, ETag: '"b"' }),
      { ...read, length: 1_000_000, validator: '"b"' },
    ],
    [
      "a part of content of unknown length",
      part({ "Content-Range": `${range}/*` }),
      { kind: "audio", type: "audio/mpeg" },
    ],
    [
      "values that cannot be recorded",
      ({ method }) => new Response(method === "HEAD" ? null : mp3, { headers: unfit }),
      { kind: "audio", length: mp3.length },
    ],
  ];
  for (const [what, answer, expected, options] of rows) {
    await using subject = await openMemory();
    await using origin = new Origin(answer);
    const [token, location] = [newToken(), origin.url("/a%20b?c")];
    const warnings: string[] = [];
    const warn = (text: string) => warnings.push(text);
    const given = origin.url("/a b?c");
    const published = await publishUrl(subject.storage, given, { ...options, token, warn });
    const { publishedAt, ...item } = published;
    assertEquals(item, { token, location, ...expected } as typeof item, what);
    assert(Math.abs(Date.now() - publishedAt) < 60_000);
    assertEquals(origin.requests, ["HEAD /a%20b?c", "GET /a%20b?c"], what);
    assertEquals((await subject.storage.find(token)).state, "linked");
    const status = /refused with (\d+)/.exec(what)?.[1];
    const warning = `"${location}" answers HEAD with ${status}`;
    const all = `${warning}; redirected clients will get the same`;
    assertEquals(warnings, status === undefined ? [] : [all], what);
  }
});

test("publishUrl() refuses a URL without audio or video, and reports its response", async () => {
  const png = Uint8Array.fromHex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489",
  );
  const html = new TextEncoder().encode("<!doctype html><title>Log in</title>");
  const redirect = (to: string) => () =>
    new Response(null, { status: 302, headers: { Location: to } });
  const rows: [answer: Answer, options: PublishUrlOptions, refusal: RegExp, requests?: number][] = [
    [
      () => new Response(null, { status: 404 }),
      {},
      /^"URL" answers GET with 404; expected 200 or 206$/,
    ],
    [() => new Response(null, { status: 302 }), {}, /^"URL" answers GET with 302; expected/],
    [onlyHead(OCTETS, 500), {}, /^"URL" answers GET with 500; expected/],
    [onlyHead(SEVEN_BYTES, 404), {}, /^"URL" answers GET with 404; expected 200 or 206$/],
    [onlyHead(SEVEN_BYTES, 200), {}, /^"URL" is empty$/],
    [
      withContent(html, { "Content-Type": "text/html" }),
      {},
      /^"URL" .* --type$/,
    ],
    [
      withContent(png, { "Content-Type": "image/png" }),
      {},
      /^"URL" is image\/png, which is neither audio nor video$/,
    ],
    [
      withContent(describedAtItsEnd(), OCTETS),
      {},
      /^"URL" is video\/mp4, but it is unknown .* --kind$/,
    ],
    [
      withContent(SOUND_OR_FILM, OCTETS),
      {},
      /^"URL" is video\/x-flv, but it is unknown .* --kind$/,
    ],
    [withContent(new Uint8Array(), { "Content-Type": "audio/mpeg" }), {}, /^"URL" is empty$/],
    [withContent(new Uint8Array(), OCTETS), { kind: "audio" }, /^"URL" is empty$/],
    [redirect("/a"), {}, /^"URL" cannot be reached: .*redirects/, 21],
    [redirect("ftp://cdn.example/a"), {}, /^"URL" cannot be reached: .*redirect/, 1],
  ];
  for (const [answer, options, refusal, requests = 2] of rows) {
    await using subject = await openMemory();
    await using origin = new Origin(answer);
    const message = await messageOf(publishUrl(subject.storage, origin.url("/a"), options));
    assertMatch(message.replaceAll(origin.url("/a"), "URL"), refusal);
    assertEquals([String(refusal), origin.requests.length], [String(refusal), requests]);
    assert(await subject.storage.catalogue.isEmpty());
  }
});

/** Returns the message of a failure, with its cause. */
async function messageOf(failing: Promise<unknown>): Promise<string> {
  const { message, cause } = await assertRejects(() => failing, Error);
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

test("publishUrl() keeps the URL given, wherever it redirects", async () => {
  await using subject = await openMemory();
  await using elsewhere = new Origin(withHead(SEVEN_BYTES));
  await using origin = new Origin(() => Response.redirect(elsewhere.url("/signed?for=a-minute")));
  const item = await publishUrl(subject.storage, origin.url("/latest.mp3"));
  assertEquals([item.location, item.length], [origin.url("/latest.mp3"), 7]);
  assertEquals(elsewhere.requests, ["HEAD", "GET"].map((by) => `${by} /signed?for=a-minute`));
});

test("publishUrl() sends no request for a token that is taken, and reuses none", async () => {
  await using subject = await openMemory();
  await using origin = new Origin(withHead(SEVEN_BYTES));
  const publish = (token = newToken()) => publishUrl(subject.storage, origin.url("/"), { token });
  const { token } = await publish();
  assertEquals(
    await messageOf(publish(token)),
    `Token "${token}" names a published item; tokens are never reused`,
  );
  await subject.storage.unpublish(token, 0);
  assertEquals(
    await messageOf(publish(token)),
    `Token "${token}" named an item before; tokens are never reused`,
  );
  assertEquals(origin.requests.length, 2);

  const other = newToken();
  const attempts = await Promise.allSettled([1, 2, 3].map(() => publish(other)));
  assertEquals(attempts.filter(({ status }) => status === "fulfilled").length, 1);
  const refusals = attempts.filter((attempt) => attempt.status === "rejected");
  assert(refusals.every(({ reason }) => reason instanceof RefusedError));
});

const head = (fields: string) => `HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`;
const isForHead = async (wire: Wire) => (await wire.head() ?? "").startsWith("HEAD");

test("publishUrl() reads only the beginning of endless content, and closes the connection", async () => {
  await using subject = await openMemory();
  const mp3 = await Deno.readFile(SAMPLE_MP3);
  const LIMIT = 100_000_000;
  let sent = 0;
  {
    await using server = new HandBackend(async (wire) => {
      const isHead = await isForHead(wire);
      await wire.write(head("Connection: close\r\nContent-Type: application/octet-stream"));
      // The other side closes it.
      while (!isHead && sent < LIMIT) sent += await wire.connection.write(mp3);
    });
    const { kind, length } = await publishUrl(subject.storage, server.url);
    assertEquals([kind, length], ["audio", undefined]);
  }
  assert(sent >= 65_536 && sent < LIMIT / 4, `${sent} bytes were sent`); // some is buffered
});

test("publishUrl() says why a URL cannot be reached, and times out", async () => {
  await using subject = await openMemory();
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  closed.close();
  await using silent = new HandBackend((wire) => wire.all());
  await using slow = new HandBackend(async (wire) => {
    const isHead = await isForHead(wire);
    await wire.write(head(isHead ? "Connection: close" : "Content-Length: 99"));
    if (!isHead) await wire.all();
  });
  await using garbled = new HandBackend((wire) => answerAll(wire, "SSH-2.0-x\r\n"));
  await using cut = new HandBackend(async (wire) => {
    const isHead = await isForHead(wire);
    await wire.write(head(isHead ? "Connection: close" : "Content-Length: 99"));
  });
  const rows: [url: string, message: RegExp][] = [
    [`http://127.0.0.1:${closed.addr.port}/`, /^"URL" cannot be reached: .*Connection refused/],
    ["http://nowhere.invalid/", /^"URL" cannot be reached: dns error: /],
    [`${silent.url}/`, /^"URL" did not answer HEAD within 0\.3 s$/],
    [`${slow.url}/`, /^"URL" did not answer GET within 0\.3 s$/],
    [`${garbled.url}/`, /^"URL" cannot be reached: invalid HTTP version/],
    [`${cut.url}/`, /^"URL" cannot be reached: .*reading a body/],
  ];
  for (const [url, expected] of rows) {
    const message = await messageOf(publishUrl(subject.storage, url, { timeoutMs: 300 }));
    assertMatch(message.replaceAll(url, "URL"), expected);
  }
  assert(await subject.storage.catalogue.isEmpty());
});

test("publishUrl() publishes nothing once it is interrupted, during or after its requests", async () => {
  await using subject = await openMemory();
  await using origin = new Origin(async ({ method }) => {
    if (method === "HEAD") return new Response(null, { status: 405 });
    return new Response(await Deno.readFile(SAMPLE_MP3));
  });
  await using silent = new HandBackend((wire) => wire.all());
  const controller = () => {
    const controller = new AbortController();
    return [controller.signal, () => controller.abort(new InterruptedError("SIGINT"))] as const;
  };
  const [early, abortEarly] = controller();
  const asking = publishUrl(subject.storage, silent.url, { signal: early });
  setTimeout(abortEarly, 50);
  assertEquals(await messageOf(asking), "stopped by SIGINT");
  const [late, abortLate] = controller();
  const options = { signal: late, warn: abortLate }; // after all requests
  assertEquals(
    await messageOf(publishUrl(subject.storage, origin.url("/"), options)),
    "stopped by SIGINT",
  );
  assert(await subject.storage.catalogue.isEmpty());
});
