import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { NOTICE } from "../../lib/documents/notice_schema.ts";
import { underHolds } from "../../lib/lifecycle/hold.ts";
import { noticeAt } from "../../lib/lifecycle/notice.ts";
import type { RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { checkParity, sendTo, valueOf } from "../server/request_table.ts";
import { plainHandler } from "../support/handlers.ts";
import { ENDPOINTS, POLICY, REDIRECTING } from "../support/notice_pages.ts";
import { failing } from "../support/one_item.ts";
import { underPolicy } from "../support/routes.ts";

const ORIGIN = "https://media.test";

/** The handler of the server under a policy, at an instant. */
function handlerAt(
  config: ReturnType<typeof underPolicy>,
  instant: string,
  policies: RoutePolicies = config.policies,
) {
  return plainHandler({
    storage: failing(new Error("The notice needs no storage")),
    config: { cacheMaxAge: 300, ...config, contact: "mailto:ops@example.com" },
    policies: () => policies,
    clock: () => Date.parse(instant),
    log() {},
  });
}

/** Requests the notice as JSON. */
async function noticeOf(handle: ReturnType<typeof handlerAt>) {
  const headers = { Accept: "application/json" };
  const response = await handle(new Request(`${ORIGIN}/deprecation`, { headers }));
  assertEquals(response.headers.get("content-type"), "application/json");
  const notice = await response.json();
  assertEquals(NOTICE.parse(notice), notice);
  return notice;
}

Deno.test("/deprecation serves the policy as JSON that matches its schema", async () => {
  const notice = await noticeOf(handlerAt(underPolicy(REDIRECTING), "2027-05-03T12:00:00Z"));
  const dates = {
    phase: "brownout",
    phaseEndsAt: "2027-05-03T17:30:00Z",
    deprecatedAt: "2027-01-01T00:00:00Z",
    sunsetAt: "2027-06-30T12:00:00Z",
    brownouts: [
      { start: "2027-03-01T09:00:00Z", end: "2027-03-01T10:00:00Z", status: 503 },
      { start: "2027-05-03T09:00:00Z", end: "2027-05-03T17:30:00Z", status: 503 },
      { start: "2027-06-10T00:00:00Z", end: "2027-06-11T00:00:00Z", status: 503 },
    ],
    brownoutStatus: 503,
    afterSunset: "redirect",
    holds: [],
  };
  assertEquals(notice, {
    ...dates,
    contact: "mailto:ops@example.com",
    endpoints: ENDPOINTS.map((endpoint) => ({ ...endpoint, ...dates })),
  });
  const now = Date.parse("2028-01-01");
  const open = definePolicy({
    deprecatedAt: "2027-01-01",
    brownoutStatus: 410,
    afterSunset: "redirect",
  });
  const [audio, video] = ENDPOINTS as [typeof ENDPOINTS[0], typeof ENDPOINTS[0]];
  const staggered = noticeAt(
    POLICY,
    [{ ...audio, policy: POLICY }, { ...video, policy: open }],
    { now },
  );
  assertEquals(NOTICE.parse(staggered).phase, "removed");
  const announced = {
    phase: "deprecated",
    phaseEndsAt: null,
    deprecatedAt: "2027-01-01T00:00:00Z",
    sunsetAt: null,
    brownouts: [],
    brownoutStatus: 410,
    afterSunset: "redirect",
    holds: [],
  } as const;
  assertEquals(staggered.endpoints.map(({ phase }) => phase), ["removed", "deprecated"]);
  assertEquals(staggered.endpoints[1], { ...video, ...announced });
  // With a route deleted, the notice speaks of the one that is left.
  const left = noticeAt(POLICY, [{ ...video, policy: open }], { now });
  assertEquals([left.phase, left.sunsetAt, left.brownoutStatus], ["deprecated", null, 410]);
  assertEquals(left.endpoints, [{ ...video, ...announced }]);
  assertEquals(left.contact, null);
  // With all routes deleted, nothing has an answer in a brownout or after the sunset.
  const { brownoutStatus, afterSunset, ...over } = NOTICE.parse(noticeAt(POLICY, [], { now }));
  assertEquals([over.phase, over.endpoints], ["removed", []]);
  assertEquals([brownoutStatus, afterSunset], [undefined, undefined]);
});

Deno.test("/deprecation says in JSON what a hold called off, also of the common policy", async () => {
  const hold = {
    start: Date.parse("2027-05-03T09:10Z"),
    end: Date.parse("2027-07-01"),
    because: "billing is down",
    route: undefined,
  };
  const underHold = (config: ReturnType<typeof underPolicy>) =>
    noticeOf(handlerAt(config, "2027-05-03T12:00:00Z", underHolds(config.policies, [hold])));
  const dates = {
    phase: "deprecated",
    phaseEndsAt: "2027-07-01T00:00:00Z",
    sunsetAt: "2027-07-01T00:00:00Z",
    brownouts: [
      { start: "2027-03-01T09:00:00Z", end: "2027-03-01T10:00:00Z", status: 503 },
      { start: "2027-05-03T09:00:00Z", end: "2027-05-03T09:10:00Z", status: 503 },
    ],
    holds: [{
      start: "2027-05-03T09:10:00Z",
      end: "2027-07-01T00:00:00Z",
      because: "billing is down",
      brownouts: [
        { start: "2027-05-03T09:10:00Z", end: "2027-05-03T17:30:00Z" },
        { start: "2027-06-10T00:00:00Z", end: "2027-06-11T00:00:00Z" },
      ],
      sunsetAt: "2027-06-30T12:00:00Z",
    }],
  };
  const notice = await underHold(underPolicy(POLICY));
  assertEquals(notice, { ...notice, ...dates });
  for (const endpoint of notice.endpoints) assertEquals(endpoint, { ...endpoint, ...dates });
  // The common policy is not that of the first path, which has dates of its own.
  const own = { "/audio/:token": definePolicy({ deprecatedAt: "2027-02-02" }) };
  const common = await underHold(underPolicy(POLICY, own));
  assertEquals(common, { ...common, ...dates });
});

Deno.test("/deprecation is negotiated, conditional, and the same for HEAD", async () => {
  const handle = handlerAt(underPolicy(POLICY), "2027-03-01T08:59:00Z");
  const types: [accept: string | undefined, type: string][] = [
    [undefined, "text/html; charset=utf-8"],
    ["application/json", "application/json"],
    ["image/png", "text/html; charset=utf-8"], // rather than 406
  ];
  const etags = new Map<string, string>();
  for (const [accept, type] of types) {
    const send = (method: string, fields: Record<string, string> = {}) =>
      sendTo(handle)(method, "/deprecation", { ...accept && { Accept: accept }, ...fields });
    const get = await send("GET");
    checkParity(String(accept), await send("HEAD"), get);
    checkParity(String(accept), await send("HEAD"), get); // would be prepared by now
    assertEquals([get.status, valueOf(get, "content-type")], [200, type], accept);
    assertEquals(valueOf(get, "vary"), "Accept");
    assertEquals(
      valueOf(get, "cache-control"),
      "max-age=59, no-transform, must-revalidate, stale-while-revalidate=0",
    );
    assertEquals(valueOf(get, "deprecation"), undefined);

    const etag = valueOf(get, "etag") ?? "";
    assertEquals(etags.get(type) ?? etag, etag);
    etags.set(type, etag);
    const notModified = await send("GET", { "If-None-Match": etag });
    checkParity("304", await send("HEAD", { "If-None-Match": etag }), notModified);
    assertEquals([notModified.status, valueOf(notModified, "vary")], [304, "Accept"]);
    const part = await send("GET", { Range: "bytes=0-4" });
    assertEquals([part.status, part.content], [206, get.content.slice(0, 5)]);
  }
  assertEquals(new Set(etags.values()).size, 2);
});

Deno.test("the page may load its own style and script, and nothing else", async () => {
  const handle = handlerAt(underPolicy(POLICY), "2027-04-01");
  const answer = await handle(new Request(`${ORIGIN}/deprecation`));
  const policy = answer.headers.get("content-security-policy") ?? "";
  const html = await answer.text();
  assertMatch(
    policy,
    /^default-src 'none'; .*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
  for (const element of ["style", "script"]) {
    const text = new RegExp(`<${element}>([^]*?)</${element}>`).exec(html)?.[1] ?? "";
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    assertStringIncludes(policy, `${element}-src 'sha256-${new Uint8Array(digest).toBase64()}'`);
  }
});
