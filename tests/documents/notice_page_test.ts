import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { unescape } from "@std/html/entities";
import { noticePage } from "../../lib/documents/notice_page.ts";
import { noticeAt } from "../../lib/lifecycle/notice.ts";
import { underHold } from "../../lib/lifecycle/hold.ts";
import { PHASES } from "../../lib/lifecycle/policy.ts";
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

Deno.test("noticePage() describes every phase", async () => {
  const texts: Record<typeof PHASES[number], RegExp[]> = {
    announced: [
      /are going away Announced\. Everything works as usual/,
      /Deprecated from 1 Jan 2027, 00:00 UTC Removal 30 Jun 2027, 12:00 UTC/,
      /Once removed, the path answers 410, .* Eventually it will answer 404/,
    ],
    deprecated: [
      /still working\. Everything works until the next brownout, 3 May 2027, 09:00 UTC\. The removal is on 30 Jun 2027, 12:00 UTC\./,
      /Deprecated from 1 Jan 2027, 00:00 UTC Removal 30 Jun /,
    ],
    brownout: [
      /temporarily disabled\. .*get 503 until 3 May 2027, 17:30 UTC\. Afterwards, requests work again until the next brownout on 10 Jun 2027/,
      /A brownout is a short planned outage.* the path answers 503, with Retry-After/,
    ],
    removed: [
      /were removed Removed\. Requests get 410\./,
      /Removal 30 Jun 2027, 12:00 UTC/,
    ],
  };
  for (const phase of PHASES) {
    const { html } = await pageAt(INSTANTS[phase]);
    assertStringIncludes(html, `class="banner ${phase}"`);
    for (const text of texts[phase]) assertMatch(textOf(html), text);
    assertMatch(html, /<dd><time datetime="2027-06-30T12:00:00Z">30 Jun 2027, 12:00 UTC</);
  }
});

Deno.test("noticePage() says until when a path is held, why, and what that called off", async () => {
  const hold = (start: string, end: string, because: string) => {
    return { start: Date.parse(start), end: Date.parse(end), because };
  };
  const may = hold("2027-05-03T09:10Z", "2027-05-10", "<billing> is down");
  const june = hold("2027-06-20", "2027-07-05", "b");
  const idle = hold("2027-04-01", "2027-04-02", "c");
  const held = [idle, may].reduce(underHold, POLICY);
  const called = "Held until 10 May 2027, 00:00 UTC (<billing> is down): the brownout from " +
    "3 May 2027, 09:10 UTC to 3 May 2027, 17:30 UTC was called off";
  const during = textOf((await pageAt("2027-05-03T12:00Z", held)).html);
  assertStringIncludes(
    during,
    "still working. Everything works until the next brownout, 10 Jun 2027, 00:00 UTC.",
  );
  assertStringIncludes(during, ` ${called} `);
  assert(!during.includes("(c)"), "one that called nothing off, and is over");
  assertStringIncludes(
    textOf((await pageAt("2027-04-01T12:00Z", held)).html),
    " Held until 2 Apr 2027, 00:00 UTC (c) ",
  );
  const later = textOf((await pageAt("2027-07-01T12:00Z", underHold(POLICY, june))).html);
  assertStringIncludes(later, "Everything works until the removal, 5 Jul 2027, 00:00 UTC.");
  const putOff = "Held until 5 Jul 2027, 00:00 UTC (b): the removal on 30 Jun 2027, 12:00 UTC " +
    "was put off until then";
  assertStringIncludes(later, putOff);
  const one = textOf((await pageAt("2027-05-03T12:00Z", held, POLICY)).html);
  assertStringIncludes(one, `/audio/{token}: ${called} `);
  assert(!one.includes("/video/{token}: Held"));
});

Deno.test("noticePage() says what to do right below the headline and the state", async () => {
  const own = definePolicy({ ...SETTINGS, sunsetAt: "2027-12-31" });
  for (const phase of PHASES) {
    const headings = [
      ...(await pageAt(INSTANTS[phase], POLICY, own)).html.matchAll(/<(h[12]|p class)/g),
    ];
    const what = phase === "deprecated" || phase === "removed" ? 2 : 1; // states
    assertEquals(
      headings.slice(0, what + 2).map(([, name]) => name),
      ["h1", ...Array(what).fill("p class"), "h2"],
      phase,
    );
    assertMatch(
      (await pageAt(INSTANTS[phase])).html,
      /<\/section>\n<section>\n<h2>What to do<\/h2>/,
    );
  }
});

Deno.test("noticePage() says how the CI of a client asks, while clients can still call", async () => {
  for (const phase of PHASES) {
    const text = textOf((await pageAt(INSTANTS[phase])).html);
    for (const way of ["lifecycle check --expect none URL", "curl --silent"]) {
      assertEquals(text.includes(way), phase !== "removed", phase);
    }
  }
});

Deno.test("noticePage() states the answer after the removal", async () => {
  const deprecated = textOf((await pageAt(INSTANTS.deprecated, REDIRECTING)).html);
  assertMatch(deprecated, /Once removed, the path answers 308, which redirects/);
  const removed = textOf((await pageAt(INSTANTS.removed, REDIRECTING)).html);
  assertMatch(
    removed,
    /Removed\. Requests with a valid token are redirected to the replacement with 308, others/,
  );
  assert(!/answers 410/.test(removed));
});

Deno.test("noticePage() says what an old path answers for the other kind only while one works", async () => {
  for (const phase of PHASES) {
    const { html } = await pageAt(INSTANTS[phase]);
    const isSaid = textOf(html).includes("an old path for one kind answers 404");
    assertEquals(isSaid, phase !== "removed", phase);
  }
});

Deno.test("noticePage() names the paths where they differ, and says the rest once", async () => {
  const own = { sunsetAt: "2027-12-31", brownouts: ["2027-09-06T09:00Z/PT1H"] };
  const video = definePolicy({ ...SETTINGS, ...own });
  const text = textOf((await pageAt(INSTANTS.removed, POLICY, video)).html);
  const parts = [
    /\/audio\/\{token\} was removed, \/video\/\{token\} is going away/,
    / \/audio\/\{token\}: Removed\. Requests get 410/,
    / \/video\/\{token\}: Deprecated, and still working/,
    / Deprecated from 1 Jan 2027/,
    / \/audio\/\{token\}: Removal 30 Jun 2027, 12:00 UTC/,
    / \/video\/\{token\}: Removal 31 Dec 2027, 00:00 UTC/,
    / \/video\/\{token\}: Brownout from 6 Sep 2027, 09:00 UTC to 6 Sep 2027, 10:00 UTC/,
  ];
  for (const expected of parts) assertMatch(text, expected);
  for (const once of [/Deprecated from/g, /A brownout is/g]) {
    assertEquals(text.match(once)?.length, 1, String(once));
  }
  const later = definePolicy({ ...SETTINGS, deprecatedAt: "2027-02-01" });
  const both = textOf((await pageAt(INSTANTS.deprecated, POLICY, later)).html);
  assertMatch(
    both,
    /\/audio\/\{token\}: Deprecated from 1 Jan .* \/video\/\{token\}: Deprecated from 1 Feb/,
  );
  assertMatch(both, /\/audio\/\{token\} and \/video\/\{token\} are going away/);
});

Deno.test("noticePage() says of one path that it is going away, or was removed", async () => {
  const rows = [[INSTANTS.deprecated, "is going away"], [INSTANTS.removed, "was removed"]] as const;
  for (const [instant, expected] of rows) {
    const now = Date.parse(instant);
    const notice = noticeAt(POLICY, endpointsUnder(POLICY).slice(1), { now });
    assertStringIncludes(
      (await noticePage(notice, { items: ITEMS, types: PROBLEM_TYPES, now })).html,
      `<h1><code>/video/{token}</code> ${expected}</h1>`,
    );
  }
});

Deno.test("noticePage() says how to contact the operator, if the operator said so", async () => {
  const linkOf = async (contact?: string) =>
    /<p>Contact the operator.*/.exec(
      (await pageAt(INSTANTS.deprecated, POLICY, POLICY, contact)).html,
    )
      ?.[0];
  const rows: [contact: string, link: string][] = [
    [
      "mailto:ops@example.com?subject=media",
      '<a href="mailto:ops@example.com?subject=media">ops@example.com</a>',
    ],
    ["https://a.test/?a&b", '<a href="https://a.test/?a&#38;b">https://a.test/?a&#38;b</a>'],
  ];
  for (const [contact, link] of rows) {
    assertEquals(await linkOf(contact), `<p>Contact the operator: ${link}</p>`);
  }
  assertEquals(await linkOf(), undefined);
  assert(!/contact/i.test((await pageAt(INSTANTS.deprecated)).html));
});

Deno.test("noticePage() works without a sunset", async () => {
  const { html } = await pageAt(INSTANTS.deprecated, OPEN);
  const text = textOf(html);
  assertMatch(text, /Removal No date set yet/);
  assertMatch(text, /Once removed, the path answers 410/);
  assert(!/A brownout|undefined|NaN|Invalid/.test(text));
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

Deno.test("noticePage() says of each endpoint what its own policy does", async () => {
  const own = definePolicy({
    deprecatedAt: "2027-02-01",
    sunsetAt: "2027-12-31",
    brownouts: ["2027-09-06T09:00Z/PT1H"],
    brownoutStatus: 410,
    afterSunset: "redirect",
  });
  const before = textOf((await pageAt(INSTANTS.deprecated, POLICY, own)).html);
  for (
    const [path, status, answer] of [["audio", 503, 410], ["video", 410, 308]] as const
  ) {
    assertMatch(
      before,
      new RegExp(
        ` /${path}/\\{token\\}: A brownout is .*? the path answers ${status}, ` +
          `.*? Once removed, the path answers ${answer}, `,
      ),
    );
  }
  assertMatch(before, / Brownout 503 or 410 The path is temporarily disabled/);
  const during = textOf((await pageAt("2027-09-06T09:30Z", POLICY, own)).html);
  assertMatch(during, / \/audio\/\{token\}: Removed\. Requests get 410/);
  assertMatch(during, / \/video\/\{token\}: Brownout: .*? Requests get 410 until 6 Sep 2027/);
  assertMatch(during, / Brownout 410 The path is temporarily disabled/);
  const after = textOf((await pageAt("2028-01-01", POLICY, own)).html);
  assertMatch(after, / \/video\/\{token\}: Removed\. Requests .* are redirected .* with 308/);
});

Deno.test("noticePage() does not mention brownouts once every path is removed", async () => {
  assert(!/brownout|Retry-After means/i.test(textOf((await pageAt(INSTANTS.removed)).html)));
});

Deno.test("noticePage() says where items are, whatever is left of the deprecated routes", async () => {
  const now = Date.parse(INSTANTS.removed);
  const all = endpointsUnder(POLICY);
  for (const endpoints of [all, all.slice(1), []]) {
    const notice = noticeAt(POLICY, endpoints, { now });
    const { html } = await noticePage(notice, { items: ITEMS, types: PROBLEM_TYPES, now });
    const text = textOf(html);
    assertMatch(
      text,
      / Where items are \/media\/\{token\}: published audio or video Other paths to items, if there were any, have been deleted\. A deleted path answers 404,/,
    );
    assertStringIncludes(html, '<div id="removed">'); // earlier errors link to it
    assertEquals(unbalanced(html), []);
    if (endpoints.length > 0) continue;
    assertMatch(html, /<title>The older paths were removed<\/title>/);
    assert(!/old paths|brownout|deprecated/i.test(text), text);
  }
});

Deno.test("noticePage() says which brownout has which status, where they differ", async () => {
  const mixed = definePolicy({
    ...SETTINGS,
    brownouts: ["2027-05-03T09:00Z/PT1H", "2027-05-03T10:00Z/PT2H=410", "2027-06-01/PT1H"],
  });
  const before = textOf((await pageAt("2027-04-01", mixed)).html);
  assertMatch(before, / Brownout from 3 May 2027, 09:00 UTC to [^,]*, 10:00 UTC, with 503 /);
  assertMatch(before, / Brownout from 3 May 2027, 10:00 UTC to [^,]*, 12:00 UTC, with 410 /);
  assertMatch(before, /: the path answers 503 or 410, with Retry-After set /);
  assertMatch(before, / Brownout 503 or 410 The path is temporarily disabled/);
  const during = textOf((await pageAt("2027-05-03T09:30Z", mixed)).html);
  assertMatch(
    during,
    /Requests get 503 until 3 May 2027, 10:00 UTC, then 410 until 3 May 2027, 12:00 UTC\. Afterwards, requests work again until the next brownout on 1 Jun 2027/,
  );
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
