import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { unescape } from "@std/html/entities";
import { spy } from "@std/testing/mock";
import { PROBLEM_TYPES } from "../../lib/server/problem_types.ts";
import { announcementFields } from "../../lib/lifecycle/announcement.ts";
import { noticeAt } from "../../lib/documents/notice.ts";
import { noticePage } from "../../lib/documents/notice_page.ts";
import { PHASES } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { INSTANTS, OPEN, pageAt, POLICY, REDIRECTING, SETTINGS } from "../support/notice_pages.ts";

/** A page's text, without markup, style and script. */
function textOf(html: string): string {
  const text = html.replaceAll(/<(style|script)>[^]*?<\/\1>/g, "")
    .replaceAll(/<\/?(code|time|strong|span|a)\b[^>]*>/g, "").replaceAll(/<[^>]*>/g, " ");
  return unescape(text).replaceAll(/\s+/g, " ");
}

/** The text of each brownout, from its duration on. */
function calendarOf(html: string): string[] {
  return [...html.matchAll(/<li class=.*?<\/time> to .*?, (.*?)<\/li>/g)]
    .map(([, rest = ""]) => textOf(rest));
}

Deno.test("noticePage() describes every phase", () => {
  const texts: Record<typeof PHASES[number], RegExp[]> = {
    announced: [
      /Announced\. Everything works as usual/,
      /Deprecated from 2027-01-01 00:00 UTC/,
      /To be removed 2027-06-30 12:00 UTC/,
      /will answer 410\. .* Eventually they will answer 404/,
    ],
    deprecated: [
      /still working\. Everything works until the next brownout, 2027-05-03 09:00 UTC/,
      /Deprecated since 2027-01-01/,
    ],
    brownout: [
      /temporarily disabled\. .*get 503 until 2027-05-03 17:30 UTC\. Then everything works/,
      /are temporarily disabled as a warning.*with Retry-After/,
    ],
    removed: [
      /were removed/,
      /Removed\. Requests get 410, and will eventually get 404/,
      /Removed 2027-06-30 12:00 UTC/,
      /were temporarily disabled as a warning/,
      /now answer 410/,
    ],
  };
  for (const phase of PHASES) {
    const { html } = pageAt(INSTANTS[phase]);
    assertStringIncludes(html, `class="banner ${phase}"`);
    for (const text of texts[phase]) assertMatch(textOf(html), text);
    assertMatch(html, /<dd><time datetime="2027-06-30T12:00:00Z">2027-06-30 12:00 UTC</);
  }
});

Deno.test("noticePage() states the answer after the removal", () => {
  const deprecated = textOf(pageAt(INSTANTS.deprecated, REDIRECTING).html);
  assertMatch(deprecated, /will answer 308, a redirect/);
  const removed = textOf(pageAt(INSTANTS.removed, REDIRECTING).html);
  assertMatch(removed, /Removed\. Requests are redirected to the replacement with 308/);
  assertMatch(removed, /now answer 308/);
  assert(!/answer 410/.test(removed));
});

Deno.test("noticePage() shows the dates of each path, where they differ", () => {
  const own = { sunsetAt: "2027-12-31", brownouts: ["2027-09-06T09:00Z/PT1H"] };
  const text = textOf(
    pageAt(INSTANTS.removed, POLICY, definePolicy({ ...SETTINGS, ...own })).html,
  );
  const parts = [
    /are going away/,
    /\/audio\/\{token\} Right now Removed\. .* Removed 2027-06-30 12:00 UTC/,
    /\/video\/\{token\} Right now Deprecated, and still .* To be removed 2027-12-31 00:00 UTC/,
    /Brownouts of \/video\/\{token\} .* 2027-09-06 10:00 UTC, 1 hr \(next\)/,
    /After the removal of \/audio\/\{token\} The old paths now answer 410/,
    /these header fields: Deprecation When .* Sunset When/, // no value that all have
  ];
  for (const expected of parts) assertMatch(text, expected);
});

Deno.test("noticePage() works without a sunset", () => {
  const { html } = pageAt(INSTANTS.deprecated, OPEN);
  const text = textOf(html);
  assertMatch(text, /To be removed No date set yet/);
  assertMatch(text, /Once they are removed The old paths will answer 410/);
  assert(!/Brownouts|Sunset:|undefined|NaN|Invalid/.test(text));
});

Deno.test("noticePage() distinguishes past, current, next and later brownouts", () => {
  const rows: [instant: string, marks: string[]][] = [
    ["2026-11-21", ["next", "upcoming", "upcoming"]],
    ["2027-03-01T09:00Z", ["on now", "next", "upcoming"]],
    ["2027-03-01T10:00Z", ["over", "next", "upcoming"]],
    ["2027-06-10T12:00Z", ["over", "over", "on now"]],
    ["2027-06-20", ["over", "over", "over"]],
    ["2027-07-01", ["over", "over", "over"]],
  ];
  const durations = ["1 hr", "8 hr, 30 min", "1 day"];
  for (const [instant, marks] of rows) {
    const expected = marks.map((mark, index) => `${durations[index]} (${mark})`);
    assertEquals(calendarOf(pageAt(instant).html), expected, instant);
  }
});

Deno.test("noticePage() states the status of a brownout once", () => {
  for (const brownoutStatus of [503, 410] as const) {
    const { html } = pageAt("2027-04-01", definePolicy({ ...SETTINGS, brownoutStatus }));
    const stated = textOf(html).match(/(?<=they answer |Brownout )\d{3}/g);
    assertEquals(stated, [String(brownoutStatus), String(brownoutStatus)]);
  }
});

Deno.test("noticePage() explains each problem type once, under its id", () => {
  const { html } = pageAt(INSTANTS.deprecated);
  const entries = [...html.matchAll(/<div id="([^"]+)"><dt>([^]*?)<\/dt>\n<dd>(.*?)<\/dd>/g)];
  assertEquals(
    entries.map(([, id, term = "", meaning = ""]) => [id, textOf(term), textOf(meaning)]),
    Object.entries(PROBLEM_TYPES)
      .map(([name, { title, status, meaning }]) => [name, `${title} ${status}`, meaning]),
  );
});

Deno.test("noticePage() shows the fields that the old paths send", () => {
  const { html } = pageAt(INSTANTS.deprecated);
  for (const [name, value] of announcementFields(POLICY)) {
    if (name === "Link") continue; // it depends on the requested item
    assertStringIncludes(html, `<code>${name}: ${value}</code>`);
  }
});

Deno.test("the page's sample client warns of deprecations only", async () => {
  const { html } = pageAt(INSTANTS.deprecated);
  const code = /aria-label="A client in JavaScript"><code>([^]*?)<\/code>/.exec(html)?.[1] ?? "";
  const client = unescape(code);
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  const run = new AsyncFunction("url", "fetch", "console", client);
  const warned = async (fields: ReturnType<typeof announcementFields>) => {
    const warn = spy((..._args: unknown[]) => {});
    const answer = () => Promise.resolve(new Response(null, { headers: fields }));
    await run("/audio/1", answer, { warn });
    return warn.calls.map(({ args }) => args);
  };
  const since = new Date("2027-01-01");
  assertEquals(await warned(announcementFields(POLICY, "/media/1")), [
    ["/audio/1 is deprecated", {
      since,
      sunset: "Wed, 30 Jun 2027 12:00:00 GMT",
      successor: "/media/1",
    }],
  ]);
  assertEquals(await warned(announcementFields(OPEN)), [
    ["/audio/1 is deprecated", { since, sunset: "not set yet", successor: undefined }],
  ]);
  assertEquals(await warned([]), []);
});

Deno.test("noticePage() escapes all of its input", () => {
  const hostile = (name: string) => `"><b id='${name}'>&amp;</b>`;
  const endpoint = { path: hostile("path"), methods: ["GET"], successor: hostile("successor") };
  const { html } = noticePage(noticeAt(POLICY, [endpoint], 0), {
    [hostile("name")]: { status: 400, title: hostile("title"), meaning: hostile("meaning") },
  });
  assert(!html.includes(hostile("name")));
  for (const name of ["path", "successor", "title", "meaning"]) {
    assert(!html.includes(hostile(name)), name);
    assertStringIncludes(textOf(html), hostile(name));
  }
  assert(!html.includes("<b id"));
});

// A browser would mend what is not.
Deno.test("noticePage() renders well-formed HTML", () => {
  for (const policy of [POLICY, REDIRECTING, OPEN]) {
    for (const phase of PHASES) {
      const { html } = pageAt(INSTANTS[phase], policy);
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
