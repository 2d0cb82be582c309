import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { NOTICE } from "../../lib/documents/notice_schema.ts";
import { underHolds } from "../../lib/lifecycle/hold.ts";
import { noticeAt } from "../../lib/lifecycle/notice.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { checkParity, seen, valueOf } from "../server/request_table.ts";
import { plainHandler } from "../support/handlers.ts";
import { ENDPOINTS, POLICY, REDIRECTING } from "../support/notice_pages.ts";
import { failing } from "../support/one_item.ts";
import { underPolicy } from "../support/routes.ts";

const ORIGIN = "https://media.test";

/** The handler of the server under a policy, at an instant. */
function handlerAt(policy: Policy, instant: string) {
  return plainHandler({
    storage: failing(new Error("The notice needs no storage")),
    config: { cacheMaxAge: 300, ...underPolicy(policy), contact: "mailto:ops@example.com" },
    clock: () => Date.parse(instant),
    log() {},
  });
}

Deno.test("/deprecation serves the policy as JSON that matches its schema", async () => {
  const handle = handlerAt(REDIRECTING, "2027-05-03T12:00:00Z");
  const headers = { Accept: "application/json" };
  const answer = await seen(await handle(new Request(`${ORIGIN}/deprecation`, { headers })));
  assertEquals(valueOf(answer, "content-type"), "application/json");
  const notice = JSON.parse(new TextDecoder().decode(answer.content));
  assertEquals(NOTICE.parse(notice), notice);
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
  const config = underPolicy(POLICY);
  const hold = {
    start: Date.parse("2027-05-03T09:10Z"),
    end: Date.parse("2027-07-01"),
    because: "billing is down",
    route: undefined,
  };
  const handle = plainHandler({
    storage: failing(new Error("The notice needs no storage")),
    config: { cacheMaxAge: 300, ...config },
    policies: () => underHolds(config.policies, [hold]),
    clock: () => Date.parse("2027-05-03T12:00:00Z"),
    log() {},
  });
  const headers = { Accept: "application/json" };
  const answer = await seen(await handle(new Request(`${ORIGIN}/deprecation`, { headers })));
  const notice = NOTICE.parse(JSON.parse(new TextDecoder().decode(answer.content)));
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
  } as const;
  assertEquals<unknown>(notice, { ...notice, ...dates });
  assertEquals<unknown>(notice.endpoints, notice.endpoints.map((each) => ({ ...each, ...dates })));
  // The common policy is not that of the first path, which has dates of its own.
  const own = underPolicy(POLICY, {
    "/audio/:token": definePolicy({ deprecatedAt: "2027-02-02" }),
  });
  const staggered = plainHandler({
    storage: failing(new Error("The notice needs no storage")),
    config: { cacheMaxAge: 300, ...own },
    policies: () => underHolds(own.policies, [hold]),
    clock: () => Date.parse("2027-05-03T12:00:00Z"),
    log() {},
  });
  const other = await staggered(new Request(`${ORIGIN}/deprecation`, { headers }));
  const common = await other.json();
  assertEquals(common, { ...common, ...dates });
});

Deno.test("/deprecation is negotiated, conditional, and the same for HEAD", async () => {
  const handle = handlerAt(POLICY, "2027-03-01T08:59:00Z");
  const types: [accept: string | undefined, type: string][] = [
    [undefined, "text/html; charset=utf-8"],
    ["*/*", "text/html; charset=utf-8"],
    ["text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"],
    ["application/json", "application/json"],
    ["application/json, text/html;q=0.5", "application/json"],
    ["application/json;q=0.5, text/html", "text/html; charset=utf-8"],
    ["image/png", "text/html; charset=utf-8"], // rather than 406
  ];
  const etags = new Map<string, string>();
  for (const [accept, type] of types) {
    const send = async (method: string, fields: Record<string, string> = {}) => {
      const headers = { ...(accept === undefined ? {} : { Accept: accept }), ...fields };
      return await seen(await handle(new Request(`${ORIGIN}/deprecation`, { method, headers })));
    };
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
  const handle = handlerAt(POLICY, "2027-04-01");
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
