/** The sentences on hidden calls, which are the same in the text and in the JSON. */

import { assertEquals, assertStringIncludes } from "@std/assert";
import type { HiddenCalls } from "../../../lib/usage/verdict/hidden_calls.ts";
import { gateText, usageJson } from "../../support/usage_outputs.ts";
import { ALWAYS, report, row } from "../../support/usage_report.ts";

const route = "/audio/:token";
const url = "https://media.example.com";
const until = Date.parse("2027-06-15T13:00:00Z");

/** What the probe found, and what is said of it. */
const ROWS: readonly (readonly [found: HiddenCalls, sentence: string])[] = [
  [
    { route, reason: "brownout", until },
    "no response may be cached in a brownout, so probe it after 2027-06-15T13:00:00Z",
  ],
  [
    { route, reason: "phase ends", until },
    "no response may be cached just before a phase ends, so probe it after 2027-06-15T13:00:00Z",
  ],
  [
    { route, reason: "too many probes" },
    "too many probes were counted today, so this one has no line of its own: probe again tomorrow (UTC)",
  ],
  [
    { route, reason: "cached" },
    "a cache in front of https://media.example.com answers calls to it for the servers: exclude it from the cache",
  ],
  [
    { route, reason: "redirect", status: 301, location: "https://a.test/" },
    "https://media.example.com redirects to https://a.test/ (301). To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "not counted", status: 304 },
    "https://media.example.com answers (304), and no process counted the request under the probe's name: a cache answered, it is another deployment, or something removes the field lifecycle-probe. To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "credentials", status: 403 },
    "https://media.example.com asks for credentials (403). To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "rate limit", status: 429 },
    "https://media.example.com limits the rate of requests (429). To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "not counted", status: 200 },
    "https://media.example.com answers (200), and no process counted the request under the probe's name: a cache answered, it is another deployment, or something removes the field lifecycle-probe. To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "no answer", message: "refused", isUntrusted: false },
    "https://media.example.com does not answer (refused). To leave the probe out, set PUBLIC_URL= for this command",
  ],
  [
    { route, reason: "no answer", message: "UnknownIssuer", isUntrusted: true },
    "https://media.example.com does not answer (UnknownIssuer). If you trust its certificate, name the file of its issuer's certificate in DENO_CERT. To leave the probe out, set PUBLIC_URL= for this command",
  ],
];

for (const [found, sentence] of ROWS) {
  const detail = "status" in found
    ? ` ${found.status}`
    : "message" in found
    ? ` ${found.message}`
    : "";
  Deno.test(`hidden calls have the same sentence in every output: ${found.reason}${detail}`, async () => {
    const probe = { url, probed: [], hidden: [found] };
    const one = await report([], ALWAYS, { routes: [route], probe });
    const [line = ""] = gateText(one).split("\n");
    assertStringIncludes(line, `(as of 2027-06-15T12:00:00Z), but ${sentence}.`);
    // Beside a route that is called, it is said of the route.
    const called = [row(0, "curl", 1, { route: "/video/:token" })];
    const several = await report(called, ALWAYS, { probe });
    assertStringIncludes(gateText(several), `\n${route}: unknown, because ${sentence}\n`);
    const json = JSON.parse(usageJson(several));
    assertEquals(json.verdicts[0].causes, [{ cause: "hidden", hidden: sentence }]);
    assertEquals(json.probe, { url, probed: [], hidden: [{ route, reason: sentence }] });
  });
}
