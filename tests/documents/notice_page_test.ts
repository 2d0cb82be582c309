import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { unescape } from "@std/html/entities";
import { noticePage } from "../../lib/documents/notice_page.ts";
import { noticeAt } from "../../lib/lifecycle/notice.ts";
import { underHold } from "../../lib/lifecycle/hold.ts";
import { PHASES, type Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { PROBLEM_TYPES } from "../../lib/server/problems.ts";
import {
  endpointsUnder,
  INSTANTS,
  ITEMS,
  OPEN,
  pageAt,
  POLICY,
  REDIRECTING,
  SETTINGS,
} from "../support/notice_pages.ts";

/** A page's text, without markup, style and script. */
function textOf(html: string): string {
  const text = html.replaceAll(/<(style|script)>[^]*?<\/\1>/g, "")
    .replaceAll(/<\/?(code|time|strong|span|a)\b[^>]*>/g, "").replaceAll(/<[^>]*>/g, " ");
  return unescape(text).replaceAll(/\s+/g, " ");
}

/** A policy for the path to videos, beside another one for that to audio. */
const LATER = definePolicy({
  ...SETTINGS,
  sunsetAt: "2027-12-31",
  brownouts: ["2027-09-06T09:00Z/PT1H"],
});
const FROM_FEBRUARY = definePolicy({ ...SETTINGS, deprecatedAt: "2027-02-01" });
const OTHERWISE = definePolicy({
  deprecatedAt: "2027-02-01",
  sunsetAt: "2027-12-31",
  brownouts: ["2027-09-06T09:00Z/PT1H"],
  brownoutStatus: 410,
  afterSunset: "redirect",
});
const MIXED = definePolicy({
  ...SETTINGS,
  brownouts: ["2027-05-03T09:00Z/PT1H", "2027-05-03T10:00Z/PT2H=410", "2027-06-01/PT1H"],
});

/** A policy under a hold. */
function held(policy: Policy, start: string, end: string, because: string): Policy {
  return underHold(policy, { start: Date.parse(start), end: Date.parse(end), because });
}
const IN_SPRING = held(
  held(POLICY, "2027-04-01", "2027-04-02", "c"),
  "2027-05-03T09:10Z",
  "2027-05-10",
  "<billing> is down",
);
const IN_SUMMER = held(POLICY, "2027-06-20", "2027-07-05", "b");

/** What a page says, and what it does not. */
type Row = [what: string, page: Parameters<typeof pageAt>, says: RegExp[], never?: RegExp];

const ROWS: readonly Row[] = [
  ["the announcement", [INSTANTS.announced], [
    /are going away Announced\. Everything works as usual/,
    /Deprecated from 1 Jan 2027, 00:00 UTC Removal 30 Jun 2027, 12:00 UTC/,
    /Once removed, the path answers 410, .* Eventually it will answer 404/,
  ]],
  ["the deprecation", [INSTANTS.deprecated], [
    /still working\. Everything works until the next brownout, 3 May 2027, 09:00 UTC\. The removal is on 30 Jun 2027, 12:00 UTC\./,
    /Deprecated from 1 Jan 2027, 00:00 UTC Removal 30 Jun /,
  ], /contact/i],
  ["a brownout", [INSTANTS.brownout], [
    /temporarily disabled\. .*get 503 until 3 May 2027, 17:30 UTC\. Afterwards, requests work again until the next brownout on 10 Jun 2027/,
    /A brownout is a short planned outage.* the path answers 503, with Retry-After/,
  ]],
  ["the removal", [INSTANTS.removed], [
    /were removed Removed\. Requests get 410\./,
    /Removal 30 Jun 2027, 12:00 UTC/,
  ], /brownout|Retry-After means/i],
  ["a policy without a sunset", [INSTANTS.deprecated, OPEN], [
    /Removal No date set yet/,
    /Once removed, the path answers 410/,
  ], /A brownout|undefined|NaN|Invalid/],
  ["the redirects to come", [INSTANTS.deprecated, REDIRECTING], [
    /Once removed, the path answers 308, which redirects/,
  ]],
  ["the redirects", [INSTANTS.removed, REDIRECTING], [
    /Removed\. Requests with a valid token are redirected to the replacement with 308, others/,
  ], /answers 410/],
  ["a hold, why, and what that called off", ["2027-05-03T12:00Z", IN_SPRING], [
    /still working\. Everything works until the next brownout, 10 Jun 2027, 00:00 UTC\./,
    / Held until 10 May 2027, 00:00 UTC \(<billing> is down\): the brownout from 3 May 2027, 09:10 UTC to 3 May 2027, 17:30 UTC was called off /,
  ], /\(c\)/], // one that called nothing off, and is over
  ["a hold that calls nothing off", ["2027-04-01T12:00Z", IN_SPRING], [
    / Held until 2 Apr 2027, 00:00 UTC \(c\) /,
  ]],
  ["a hold that puts off the removal", ["2027-07-01T12:00Z", IN_SUMMER], [
    /Everything works until the removal, 5 Jul 2027, 00:00 UTC\./,
    /Held until 5 Jul 2027, 00:00 UTC \(b\): the removal on 30 Jun 2027, 12:00 UTC was put off until then/,
  ]],
  ["a hold on one path", ["2027-05-03T12:00Z", IN_SPRING, POLICY], [
    /\/audio\/\{token\}: Held until 10 May 2027, 00:00 UTC \(<billing> is down\): the brownout from 3 May /,
  ], /\/video\/\{token\}: Held/],
  ["paths that differ, and the rest once", [INSTANTS.removed, POLICY, LATER], [
    /\/audio\/\{token\} was removed, \/video\/\{token\} is going away/,
    / \/audio\/\{token\}: Removed\. Requests get 410/,
    / \/video\/\{token\}: Deprecated, and still working/,
    / Deprecated from 1 Jan 2027/,
    / \/audio\/\{token\}: Removal 30 Jun 2027, 12:00 UTC/,
    / \/video\/\{token\}: Removal 31 Dec 2027, 00:00 UTC/,
    / \/video\/\{token\}: Brownout from 6 Sep 2027, 09:00 UTC to 6 Sep 2027, 10:00 UTC/,
    /A brownout is/,
  ], /(Deprecated from|A brownout is).*\1/],
  ["paths deprecated at different dates", [INSTANTS.deprecated, POLICY, FROM_FEBRUARY], [
    /\/audio\/\{token\}: Deprecated from 1 Jan .* \/video\/\{token\}: Deprecated from 1 Feb/,
    /\/audio\/\{token\} and \/video\/\{token\} are going away/,
  ]],
  ["what each path will answer by its own policy", [INSTANTS.deprecated, POLICY, OTHERWISE], [
    / \/audio\/\{token\}: A brownout is .*? the path answers 503, .*? Once removed, the path answers 410, /,
    / \/video\/\{token\}: A brownout is .*? the path answers 410, .*? Once removed, the path answers 308, /,
    / Brownout 503 or 410 The path is temporarily disabled/,
  ]],
  ["what each path answers by its own policy", ["2027-09-06T09:30Z", POLICY, OTHERWISE], [
    / \/audio\/\{token\}: Removed\. Requests get 410/,
    / \/video\/\{token\}: Brownout: .*? Requests get 410 until 6 Sep 2027/,
    / Brownout 410 The path is temporarily disabled/,
  ]],
  ["a path that redirects, beside one that does not", ["2028-01-01", POLICY, OTHERWISE], [
    / \/video\/\{token\}: Removed\. Requests .* are redirected .* with 308/,
  ]],
  ["which brownout will have which status", ["2027-04-01", MIXED], [
    / Brownout from 3 May 2027, 09:00 UTC to [^,]*, 10:00 UTC, with 503 /,
    / Brownout from 3 May 2027, 10:00 UTC to [^,]*, 12:00 UTC, with 410 /,
    /: the path answers 503 or 410, with Retry-After set /,
    / Brownout 503 or 410 The path is temporarily disabled/,
  ]],
  ["which brownout has which status", ["2027-05-03T09:30Z", MIXED], [
    /Requests get 503 until 3 May 2027, 10:00 UTC, then 410 until 3 May 2027, 12:00 UTC\. Afterwards, requests work again until the next brownout on 1 Jun 2027/,
  ]],
];

for (const [what, page, says, never] of ROWS) {
  Deno.test(`noticePage() describes ${what}`, async () => {
    const text = textOf((await pageAt(...page)).html);
    for (const expected of says) assertMatch(text, expected);
    assert(!never?.test(text), text);
  });
}

Deno.test("noticePage() says what to do right below the headline and the state", async () => {
  for (const phase of PHASES) {
    const { html } = await pageAt(INSTANTS[phase], POLICY, LATER);
    const states = phase === "announced" ? 1 : 2; // from then on, the paths differ
    const order = html.matchAll(/<(h1|p class|h2>What to do)/g).map(([, element]) => element);
    const expected = ["h1", ...Array(states).fill("p class"), "h2>What to do"];
    assertEquals([...order].slice(0, expected.length), expected, phase);
  }
});

Deno.test("noticePage() says what clients can do only while an old path works", async () => {
  const texts = [
    "lifecycle check --expect none URL",
    "curl --silent",
    "an old path for one kind answers 404",
  ];
  for (const phase of PHASES) {
    const page = textOf((await pageAt(INSTANTS[phase])).html);
    for (const text of texts) assertEquals(page.includes(text), phase !== "removed", phase);
  }
});

Deno.test("noticePage() says how to contact the operator, if the operator said so", async () => {
  const rows: [contact: string, link: string][] = [
    [
      "mailto:ops@example.com?subject=media",
      '<a href="mailto:ops@example.com?subject=media">ops@example.com</a>',
    ],
    ["https://a.test/?a&b", '<a href="https://a.test/?a&#38;b">https://a.test/?a&#38;b</a>'],
  ];
  for (const [contact, link] of rows) {
    const { html } = await pageAt(INSTANTS.deprecated, POLICY, POLICY, contact);
    assertStringIncludes(html, `<p>Contact the operator: ${link}</p>`);
  }
});

Deno.test("noticePage() lists the brownouts that are not over", async () => {
  const rows: [instant: string, days: string[]][] = [
    ["2026-11-21", ["1 Mar", "3 May", "10 Jun"]],
    ["2027-03-01T09:00Z", ["1 Mar", "3 May", "10 Jun"]],
    ["2027-03-01T10:00Z", ["3 May", "10 Jun"]],
    ["2027-06-10T12:00Z", ["10 Jun"]],
    ["2027-06-20", []],
  ];
  for (const [instant, days] of rows) {
    const text = textOf((await pageAt(instant)).html);
    assertEquals(/A brownout is/.test(text), days.length > 0, instant);
    const found = text.matchAll(/Brownout from (\d+ \w+).*? UTC to /g);
    assertEquals([...found].map(([, day]) => day), days, instant);
  }
});

Deno.test("noticePage() names what is left of the deprecated routes, and where items are", async () => {
  const all = endpointsUnder(POLICY);
  const rows: [instant: string, endpoints: typeof all, headline: string][] = [
    [INSTANTS.removed, all, "<h1><code>/audio/{token}</code> and "],
    [INSTANTS.removed, all.slice(1), "<h1><code>/video/{token}</code> was removed</h1>"],
    [INSTANTS.deprecated, all.slice(1), "<h1><code>/video/{token}</code> is going away</h1>"],
    [INSTANTS.removed, [], "<title>The older paths were removed</title>"],
  ];
  for (const [instant, endpoints, headline] of rows) {
    const now = Date.parse(instant);
    const notice = noticeAt(POLICY, endpoints, { now });
    const { html } = await noticePage(notice, { items: ITEMS, types: PROBLEM_TYPES, now });
    const text = textOf(html);
    assertMatch(
      text,
      / Where items are \/media\/\{token\}: published audio or video Other paths to items, if there were any, have been deleted\. A deleted path answers 404,/,
    );
    assertStringIncludes(html, headline);
    assertStringIncludes(html, '<div id="removed">'); // earlier errors link to it
    assertEquals(unbalanced(html), []);
    if (endpoints.length === 0) assert(!/old paths|brownout|deprecated/i.test(text), text);
  }
});

Deno.test("noticePage() states the status of a brownout once", async () => {
  for (const brownoutStatus of [503, 410] as const) {
    const { html } = await pageAt("2027-04-01", definePolicy({ ...SETTINGS, brownoutStatus }));
    const stated = textOf(html).match(/(?<=removal: the path answers |Brownout )\d{3}/g);
    assertEquals(stated, [String(brownoutStatus), String(brownoutStatus)]);
  }
});

Deno.test("noticePage() explains each problem type once, under its id", async () => {
  const { html } = await pageAt(INSTANTS.deprecated);
  const entries = [...html.matchAll(/<div id="([^"]+)"><dt>([^]*?)<\/dt>\n<dd>(.*?)<\/dd>/g)];
  assertEquals(
    entries.map(([, id, term = "", meaning = ""]) => [id, textOf(term), textOf(meaning)]),
    Object.entries(PROBLEM_TYPES)
      .map(([name, { title, status, meaning }]) => [name, `${title} ${status}`, meaning]),
  );
});

Deno.test("noticePage() escapes all of its input", async () => {
  const hostile = (name: string) => `"><b id='${name}'>&amp;</b>`;
  const endpoint = { path: hostile("path"), methods: ["GET"], successor: hostile("successor") };
  const { html } = await noticePage(
    noticeAt(POLICY, [{ ...endpoint, policy: POLICY }], { now: 0 }),
    {
      items: [{ path: hostile("item"), serves: hostile("kinds") }],
      types: {
        [hostile("name")]: { status: 400, title: hostile("title"), meaning: hostile("meaning") },
      },
      now: 0,
    },
  );
  assert(!html.includes(hostile("name")));
  for (const name of ["path", "successor", "item", "kinds", "title", "meaning"]) {
    assert(!html.includes(hostile(name)), name);
    assertStringIncludes(textOf(html), hostile(name));
  }
  assert(!html.includes("<b id"));
});

// A browser would mend what is not.
Deno.test("noticePage() renders well-formed HTML", async () => {
  for (const policy of [POLICY, REDIRECTING, OPEN]) {
    for (const phase of PHASES) {
      const { html } = await pageAt(INSTANTS[phase], policy);
      assertEquals(unbalanced(html), [], phase);
      assertMatch(html, /^<!DOCTYPE html>\n<html lang="en">/);
      assertMatch(html, /<title>Retirement of \/audio\/\{token\} and \/video\/\{token\}<\/title>/);
      if (policy !== POLICY) continue;
      assertStringIncludes(html, `class="banner ${phase}"`);
      assertMatch(html, /<dd><time datetime="2027-06-30T12:00:00Z">30 Jun 2027, 12:00 UTC</);
    }
  }
});

/** The unbalanced tags. */
function unbalanced(html: string): string[] {
  const markup = html.replaceAll(/(<(style|script)>)[^]*?(<\/\2>)/g, "$1$3");
  const open: string[] = [];
  const strays: string[] = [];
  for (const [, slash, name = ""] of markup.matchAll(/<(\/?)([a-z][a-z0-9]*)[^<>]*>/g)) {
    if (name === "meta" || name === "link") continue; // has no end tag
    if (slash === "") open.push(name);
    else if (open.pop() !== name) strays.push(name);
  }
  return [...open, ...strays, ...markup.replaceAll(/<[^<>]*>/g, "").match(/[<>]/g) ?? []];
}
