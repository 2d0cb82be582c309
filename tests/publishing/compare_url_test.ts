import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { LinkedItem } from "../../lib/storage/storage.ts";
import { newToken } from "../../lib/storage/token.ts";
import { type Answer, Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { compareUrl } from "../support/publishing.ts";

const test = needing("environment", "network");
const { signal } = new AbortController();

const STATED = { "Content-Type": "audio/mpeg", "Content-Length": "7", ETag: '"a"' };
const RECORD = { type: "audio/mpeg", length: 7, validator: '"a"' };

const itemAt = (location: string, record: Partial<LinkedItem> = RECORD): LinkedItem => ({
  ...{ token: newToken(), kind: "audio", location, publishedAt: 0 },
  ...record,
});

/** Answers HEAD and GET alike. */
const stating =
  (fields: Record<string, string>, status = 200, content = "content"): Answer => ({ method }) =>
    new Response(method === "HEAD" ? null : content, { status, headers: fields });

/** Answers HEAD with a status only, and GET with content. */
const onlyGet = (head: number): Answer => (request) =>
  request.method === "HEAD" ? new Response(null, { status: head }) : stating(STATED)(request);

test("compareUrl() reports what differs from the record, as HEAD states and GET confirms", async () => {
  const rows: [
    what: string,
    answer: Answer,
    record: Partial<LinkedItem>,
    state: string,
    reason: RegExp,
    requests?: string,
  ][] = [
    ["as on record", stating(STATED), RECORD, "same", /^$/, "HEAD"],
    ["HEAD refused", onlyGet(405), RECORD, "same", /^$/, "HEAD GET"],
    ["HEAD states nothing", onlyGet(200), RECORD, "same", /^$/, "HEAD GET"],
    ["nothing on record", stating(STATED), {}, "same", /^$/, "HEAD"],
    ["404", stating({}, 404), RECORD, "missing", / answers GET with 404$/],
    ["410", stating({}, 410), {}, "missing", / answers GET with 410$/],
    ["403", stating({}, 403), {}, "different", / answers GET with 403$/],
    [
      "another type",
      stating({ ...STATED, "Content-Type": "text/html" }),
      RECORD,
      "different",
      / states type text\/html instead of audio\/mpeg$/,
    ],
    [
      "another length",
      stating({ ...STATED, "Content-Length": "8" }, 200, "contents"),
      RECORD,
      "different",
      / states length 8 instead of 7$/,
    ],
    [
      "another validator",
      stating({ ...STATED, ETag: '"b"' }),
      RECORD,
      "different",
      / states validator "b" instead of "a"$/,
    ],
    [
      "no validator",
      stating({ "Content-Type": "video/mp4", "Content-Length": "7" }),
      RECORD,
      "different",
      / states type video\/mp4 instead of audio\/mpeg, validator unknown instead of "a"$/,
    ],
    [
      "empty",
      stating({ "Content-Type": "audio/mpeg", "Content-Length": "0" }, 200, ""),
      { type: "audio/mpeg", validator: '"a"' },
      "different",
      / is empty$/,
    ],
  ];
  for (const [what, answer, record, state, reason, requests = "HEAD GET"] of rows) {
    await using origin = new Origin(answer);
    const location = origin.url("/a.mp3");
    const comparison = await compareUrl(itemAt(location, record), { signal });
    const told = "reason" in comparison ? comparison.reason : "";
    assertEquals(comparison.state, state, what);
    assertMatch(told, reason, what);
    assert(told === "" || told.startsWith(`"${location}" `), told);
    assertEquals(origin.requests.map((request) => request.split(" ")[0]).join(" "), requests, what);
  }
});

test("compareUrl() follows redirects, as clients do", async () => {
  await using origin = new Origin((request) =>
    new URL(request.url).pathname === "/a.mp3"
      ? Response.redirect(new URL("/sign-in", request.url))
      : stating({ "Content-Type": "text/html" })(request)
  );
  const { state } = await compareUrl(itemAt(origin.url("/a.mp3")), { signal });
  assertEquals(state, "different");
});

test("compareUrl() does not report a failing server as a difference", async () => {
  for (const status of [408, 429, 500, 503]) {
    await using origin = new Origin(stating({}, status));
    await assertRejects(
      () => compareUrl(itemAt(origin.url("/a")), { signal }),
      Error,
      `answers GET with ${status}`,
    );
  }
  const nowhere = itemAt(`http://127.0.0.1:${freePort()}/a`);
  await assertRejects(() => compareUrl(nowhere, { signal }), Error, "cannot be reached");
  const end = Promise.withResolvers<Response>();
  await using silent = new Origin(() => end.promise);
  const item = itemAt(silent.url("/a"));
  await assertRejects(
    () => compareUrl(item, { signal, timeout: 50 }),
    Error,
    "did not answer HEAD within 0.05 s",
  );
  await assertRejects(
    () => compareUrl(item, { signal: AbortSignal.abort(new TypeError("enough")) }),
    TypeError,
    "enough",
  );
  end.resolve(new Response());
});
