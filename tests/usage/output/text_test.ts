/** The report as text: who calls, and when. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { PROGRAM } from "../../../lib/cli/usage.ts";
import type { Policy } from "../../../lib/lifecycle/policy.ts";
import type { Interval } from "../../../lib/lifecycle/instant.ts";
import { ownerPage } from "../../../lib/usage/output/owner_page.ts";
import type { RecordedHold } from "../../../lib/usage/record/holds.ts";
import { usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  POLICY,
  read,
  report,
  row,
  ROWS,
  running,
  session,
} from "../../support/usage_report.ts";

Deno.test("usageText() shows the calls per day, the clients, the sunset and the verdict", async () => {
  const text = usageText(await report(ROWS, ALWAYS));
  const parts = [
    "\n\nCalls to deprecated routes from 2027-06-08 to 2027-06-15T12:00:00Z (7 whole days and part of" +
    " 2027-06-15, UTC)\nAs of 2027-06-15T12:00:00Z. On record since 2027-05-04T20:00:00Z.\n",
    "\n\n/audio/:token: called, 36 calls, the last recorded at 2027-06-15T12:00:00Z; 12 other requests." +
    " Sunset: 2027-06-17T00:00:00Z.\n" +
    "  Client    Calls  Days  First call  Last recorded on      Phases\n" +
    "  Overcast     36     3  2027-06-08  ",
    "\n\nCalls to /audio/:token by day:\n" +
    `  2027-06-08  30  ${"█".repeat(40)}\n` +
    `  2027-06-09   5  ${"█".repeat(7)}  brownout\n` +
    "  2027-06-10   0  brownout of 2027-06-10T09:00:00Z\n  2027-06-11   0\n",
    "\n  2027-06-15   1  ██  part of the day\n",
    "  Client  Calls  Days  First call  Last recorded on      Phases\n" +
    "  curl       60     1  2027-06-10  2027-06-10T12:00:00Z  deprecated\n\n",
    "Still called: 96 calls to /audio/:token and /video/:token by 2 clients from 2027-06-08 (as of" +
    " 2027-06-15T12:00:00Z), the last by Overcast recorded at 2027-06-15T12:00:00Z.\n",
    "A brownout is a short planned outage that warns clients of the removal.",
  ];
  for (const part of parts) assertStringIncludes(text, part);
  assert(text.startsWith("Still called: "), "the verdict comes first");
  for (const client of ["Overcast", "curl"]) {
    const named = text.split("\n").filter((line) => line.includes(`  ${client} `));
    assertEquals(named.length, 1, "a client stands once");
  }
  assert(!text.includes("on record\n"), "every day is on record");
  const young = usageText(await report(ROWS, [running(100)]));
  assertMatch(young, /\n {2}2027-06-09 {3}5 .* {2}not fully on record\n {2}2027-06-12 {3}0\n/);
  const first = usageText(await report([], [running(1)], { days: 30 }));
  assert(!first.includes("by day"), "nobody called");
  const away = usageText(
    await report(ROWS.slice(0, -1), [session(1000, 60, { ended: "stopped" })]),
  );
  assertMatch(
    away,
    /\n {2}2027-06-12 +0\n {2}2027-06-15 +0 {2}part of the day {2}not fully on record\n/,
  );
  assert(usageText(await report([], [])).split("\n").length < 16);
});

Deno.test("a report says what holds called off in its period, and goes by what was left", async () => {
  const at = (text: string) => Date.parse(`${text}Z`);
  const hold = (since: string, until: string, more: Partial<RecordedHold>): RecordedHold => {
    const fixed = { id: since, route: undefined, released: undefined, because: "b" };
    return { ...fixed, since: at(since), until: at(until), ...more };
  };
  const holds = [
    hold("2027-05-01T00:00", "2027-05-02T00:00", { because: "before" }),
    hold("2027-06-10T09:10", "2027-06-11T00:00", {
      route: "/audio/:token",
      because: "billing is down",
      released: at("2027-06-10T12:00"),
    }),
    hold("2027-06-15T00:00", "2027-06-20T00:00", {}),
  ];
  const brownouts = [{ start: at("2027-05-01T09:00"), end: at("2027-05-01T10:00"), status: 503 }];
  const policy = { ...POLICY, brownouts: [...brownouts, ...POLICY.brownouts] } as Policy;
  const policies = { "/audio/:token": policy, "/video/:token": policy };
  const sessions = [running(1000, { policies })];
  const made = await report([...ROWS, row(5, "curl", 1)], sessions, { holds });
  const [audio, both] = [
    "/audio/:token: held until 2027-06-10T12:00:00Z (billing is down): the brownout from " +
    "2027-06-10T09:10:00Z to 2027-06-10T12:00:00Z was called off",
    "/audio/:token and /video/:token: held until 2027-06-20T00:00:00Z (b): the sunset at " +
    "2027-06-17T00:00:00Z was put off until then",
  ];
  for (const line of [audio, both]) assertStringIncludes(usageText(made), `\n${line}\n`);
  assert(!usageText(made).includes("(before)"));
  assertStringIncludes(usageText(made), "Sunset: 2027-06-20T00:00:00Z.");
  const page = usagePage(made);
  assertStringIncludes(page, "billing is down");
  const reported = JSON.parse(usageJson(made)).policies["/audio/:token"];
  assertEquals(
    reported.brownouts.map(({ start, end }: Interval) => [start, end]),
    [
      ["2027-06-10T09:00:00.000Z", "2027-06-10T09:10:00.000Z"],
      ["2027-06-10T12:00:00.000Z", "2027-06-10T17:00:00.000Z"],
    ],
  );
  const { clients } = made;
  const owner = ownerPage({ ...made, client: "curl", clients }, { sessions: ALWAYS.map(read) });
  assertMatch(owner, /Held until <time[^>]*>10 Jun 2027, 12:00 UTC<\/time> \(billing is down\): /);
});

Deno.test("usageText() lists up to 25 clients", async () => {
  const clients = Array.from({ length: 27 }, (_, index) => row(index / 24, `client-${index}`, 1));
  const listed = (text: string) =>
    text.match(/^ {2}(?:client-\d+ |and \d+ more clients$)/gm)?.length;
  const all = usageText(await report(clients, ALWAYS, { routes: ["/audio/:token"] }));
  assertEquals(listed(all), 26);
  assertMatch(all, /\n {2}and 2 more clients\n/);
  const few = usageText(await report(clients.slice(0, 25), ALWAYS, { routes: ["/audio/:token"] }));
  assertEquals(listed(few), 25);
});

Deno.test("the report says how a cache in front can be found, if nothing was probed", async () => {
  const covered = "A cache in front may hide others: ";
  assertStringIncludes(
    usageText(await report([], ALWAYS), { ...PROGRAM, howToProbe: "the gate (--gate)" }),
    `${covered}the gate (--gate) checks for one.`,
  );
  assertStringIncludes(
    usageText(await report([], ALWAYS)),
    `${covered}set PUBLIC_URL, and the gate checks for one.`,
  );
});
