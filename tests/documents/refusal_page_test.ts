import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { handlerAt, INSTANTS } from "../support/notice_pages.ts";
import { checkParity, seen } from "../server/request_table.ts";

const HTML = "text/html; charset=utf-8";
const JSON_TYPE = "application/problem+json";
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** Accept, and the type that it gets. */
const PREFERENCES: readonly (readonly [accept: string | undefined, type: string])[] = [
  [undefined, JSON_TYPE],
  ["*/*", JSON_TYPE],
  ["audio/webm,audio/ogg;q=0.9,*/*;q=0.5", JSON_TYPE],
  ["application/json", JSON_TYPE],
  ["text/html;q=0.5, application/json", JSON_TYPE],
  ["text/html;q=0", JSON_TYPE],
  [BROWSER, HTML],
  ["text/html, application/json;q=0.5", HTML],
];

const token = newToken();
const STATES = [
  ["brownout", INSTANTS.brownout, 503],
  ["removed", INSTANTS.removed, 410],
] as const;

for (const [phase, instant, status] of STATES) {
  Deno.test(`${phase}: who prefers HTML gets a page, and everyone else what they got before`, async () => {
    const send = handlerAt(instant);
    for (let times = 0; times < 3; times++) { // prepared from the second time on
      for (const [accept, type] of PREFERENCES) {
        const what = `${accept}, time ${times}`;
        const [get, head] = [
          await send("GET", `/audio/${token}`, accept),
          await send("HEAD", `/audio/${token}`, accept),
        ];
        assertEquals([get.status, get.headers.get("content-type")], [status, type], what);
        assertEquals(get.headers.get("vary"), "Accept", what);
        const body = await get.clone().text();
        assertEquals(body.startsWith("<!DOCTYPE html>"), type === HTML, what);
        checkParity(what, await seen(head), await seen(get));
      }
    }
  });
}

Deno.test("a refusal's page says what happened and where the item is, without a script", async () => {
  const texts = {
    brownout: [/works again from .*2027-05-03 17:30 UTC.* removed for good at .*2027-06-30/],
    removed: [/It worked until .*2027-06-30 12:00 UTC/],
  };
  for (const [phase, instant] of STATES) {
    const response = await handlerAt(instant)("GET", `/audio/${token}`, BROWSER);
    const html = await response.text();
    for (const text of texts[phase]) assertMatch(html, text);
    assertStringIncludes(html, `<a href="/media/${token}">`);
    assertStringIncludes(html, '<a href="/deprecation">');
    assertStringIncludes(html, '<meta name="robots" content="noindex">');
    assert(!html.includes("<script"));
    const policy = response.headers.get("content-security-policy");
    assertMatch(policy ?? "", /^default-src 'none'; style-src 'sha256-[^']*'; img-src data:;/);
    const hostile = await handlerAt(instant)("GET", "/audio/%3Cscript%3E", BROWSER);
    const page = await hostile.text();
    assert(!page.includes("script") && !page.includes("/media/"), page);
  }
});
