import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { compareUrl } from "../../lib/publishing/compare_url.ts";
import type { LinkedItem } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { type Answer, Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";

const test = needing("environment", "network");
const { signal } = new AbortController();

const STATED = { "Content-Type": "audio/mpeg", "Content-Length": "7", ETag: '"a"' };
const FACTS = { type: "audio/mpeg", length: 7, validator: '"a"' };

const itemAt = (location: string, facts: Partial<LinkedItem> = FACTS): LinkedItem => ({
  ...{ token: newToken(), kind: "audio", location, publishedAt: 0 },
  ...facts,
});

/** Answers HEAD and GET alike. */
const stating =
  (fields: Record<string, string>, status = 200, content = "content"): Answer => ({ method }) =>
    new Response(method === "HEAD" ? null : content, { status, headers: fields });

/** Answers HEAD as published, and GET otherwise. */
const onlyHead = (answer: Answer): Answer => (request) =>
  request.method === "HEAD" ? stating(STATED)(request) : answer(request);

/** Answers HEAD with a status only, and GET with content. */
const onlyGet = (head: number): Answer => (request) =>
  request.method === "HEAD" ? new Response(null, { status: head }) : stating(STATED)(request);

test("compareUrl() reports what differs from the catalogue, as HEAD states and GET confirms", async () => {
  const length = (value: string) => ({ ...STATED, "Content-Length": value });
  const { ETag: _, ...unvalidated } = { ...STATED, "Content-Type": "video/mp4" };
  type Row = [
    what: string,
    answer: Answer,
    expected: RegExp | "same",
    facts?: Partial<LinkedItem>,
  ];
  const rows: Row[] = [
    ["as published", stating(STATED), "same"],
    ["no facts in the catalogue", stating(STATED), "same", {}],
    ["GET states nothing", onlyHead(stating({})), "same"],
    ["GET alone 404", onlyHead(stating({}, 404)), /^missing: "URL" answers GET with 404$/],
    ["GET alone 403", onlyHead(stating({}, 403)), /^different: "URL" answers GET with 403$/],
    ["GET alone empty", onlyHead(stating({}, 200, "")), /^different: "URL" is empty$/],
    ["HEAD refused", onlyGet(405), "same"],
    ["HEAD states nothing", onlyGet(200), "same"],
    ["404", stating({}, 404), /^missing: "URL" answers GET with 404$/],
    ["410", stating({}, 410), /^missing: "URL" answers GET with 410$/, {}],
    ["403", stating({}, 403), /^different: "URL" answers GET with 403$/],
    [
      "another type",
      stating({ ...STATED, "Content-Type": "text/html" }),
      /^different: "URL" states type text\/html instead of audio\/mpeg$/,
    ],
    [
      "another length",
      stating(length("8"), 200, "contents"),
      /^different: "URL" states length 8 instead of 7$/,
    ],
    [
      "another validator",
      stating({ ...STATED, ETag: '"b"' }),
      /^different: "URL" states validator "b" instead of "a"$/,
    ],
    [
      "no validator",
      stating(unvalidated),
      /^different: "URL" states type video.mp4 .* audio.mpeg, validator unknown instead of "a"$/,
    ],
    ["empty", stating(length("0"), 200, ""), /^different: "URL" is empty$/],
  ];
  for (const [what, answer, expected, facts] of rows) {
    await using origin = new Origin(answer);
    const location = origin.url("/a.mp3");
    const comparison = await compareUrl(itemAt(location, facts), { signal });
    const reason = "reason" in comparison ? `: ${comparison.reason}` : "";
    const found = `${comparison.state}${reason.replace(location, "URL")}`;
    if (expected === "same") assertEquals(found, expected, what);
    else assertMatch(found, expected, what);
    assertEquals(origin.requests, ["HEAD /a.mp3", "GET /a.mp3"], what);
  }
});

test("compareUrl() does not report a failing server as a difference", async () => {
  for (const status of [408, 429, 500, 503]) {
    await using origin = new Origin(stating({}, status));
    await using broken = new Origin(onlyHead(stating({}, status)));
    for (const location of [origin.url("/a"), broken.url("/a")]) {
      const compare = () => compareUrl(itemAt(location), { signal });
      await assertRejects(compare, Error, `answers GET with ${status}`);
    }
  }
  const nowhere = itemAt(`http://127.0.0.1:${freePort()}/a`);
  await assertRejects(() => compareUrl(nowhere, { signal }), Error, "cannot be reached");
});
