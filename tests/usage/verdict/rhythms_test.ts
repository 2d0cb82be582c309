/** The gate without a number: each client is asked for its own longest pause. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { dayOf } from "../../../lib/http/timestamp.ts";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import { reportUsage } from "../../../lib/usage/verdict/report.ts";
import type { Verdict } from "../../../lib/usage/verdict/verdict.ts";
import { readSessions } from "../../../lib/usage/verdict/waiting.ts";
import { COUNT, DAY } from "../../support/counted_call.ts";
import { randomFrom } from "../../support/random.ts";
import { ledgerAt, openLedgerDatabase } from "../../support/ledger_at.ts";
import { begin, FOREVER } from "../../support/ledger_rows.ts";
import { gateText, usageJson, usagePage } from "../../support/usage_outputs.ts";
import { HOUR, POLICY, report, row, running, session } from "../../support/usage_report.ts";

const AUDIO = ["/audio/:token"];
/** A server that has counted for ten months. */
const TEN_MONTHS = [running(300 * 24)];
const BY_RHYTHM = { days: 30, isByRhythm: true, routes: AUDIO } as const;
const on = (client: string, ...days: number[]) => days.map((day) => row(day, client, 500));
const stopped = (from: number, to: number): Session[] => [
  session(300 * 24, from * 24, { id: "b", ended: "stopped" }),
  running(to * 24),
];

/** What clients did, and what the gate says with and without a number. */
const SCENES: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  byRhythm: Verdict["state"],
  fixed: Verdict["state"],
  sessions?: readonly Session[],
  options?: { ignore?: string[]; atMost?: number; trustStops?: boolean },
])[] = [
  ["a client within its rhythm", on("id a", 92, 184, 276), "called", "clear"],
  ["one that has passed it by a day", on("id a", 93, 185, 277), "clear", "clear"],
  ["one whose longest pause was not the last one", on("id a", 80, 100, 190), "called", "clear"],
  ["two days show no rhythm", on("id a", 92, 184), "clear", "clear"],
  [
    "many calls on two days show none",
    [...on("id a", 92, 184), ...on("id a", 184)],
    "clear",
    "clear",
  ],
  ["daily calls that have ended", on("id a", 31, 32, 33, 34), "clear", "clear"],
  ["a name that may be anybody's", on("(other)", 92, 184, 276), "clear", "clear"],
  ["another such name", on("(no User-Agent)", 92, 184, 276), "clear", "clear"],
  ["a client that is ignored", on("id a", 92, 184, 276), "clear", "clear", TEN_MONTHS, {
    ignore: ["id a"],
  }],
  [
    "as many calls as are allowed on its last day",
    on("id a", 92, 184, 276),
    "clear",
    "clear",
    TEN_MONTHS,
    { atMost: 500 },
  ],
  ["one more", on("id a", 92, 184, 276), "called", "clear", TEN_MONTHS, { atMost: 499 }],
  ["a call within 30 days", on("id a", 30), "called", "called"],
  [
    "a stop that a rhythm reaches back to",
    on("id a", 100, 192, 284),
    "unknown",
    "clear",
    stopped(91, 90),
  ],
  [
    "the same, and the operator's word",
    on("id a", 100, 192, 284),
    "clear",
    "clear",
    stopped(91, 90),
    { trustStops: true },
  ],
  ["a stop before that", on("id a", 100, 192, 284), "clear", "clear", stopped(94, 93)],
  ["a stop within 30 days", [], "unknown", "unknown", stopped(20, 19)],
];

for (const [what, rows, byRhythm, fixed, sessions = TEN_MONTHS, options = {}] of SCENES) {
  Deno.test(`the gate asks for each client's rhythm, or for days: ${what}`, async () => {
    const asked = await report(rows, sessions, { ...BY_RHYTHM, ...options });
    assertEquals(asked.verdict.state, byRhythm, gateText(asked));
    const days = await report(rows, sessions, { ...BY_RHYTHM, ...options, isByRhythm: false });
    assertEquals(days.verdict.state, fixed, gateText(days));
  });
}

Deno.test("a client that is due is named with its rhythm, and the day from which it is silent", async () => {
  const rows = on("id quarterly-billing", 70, 162, 254);
  const called = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, routes: undefined });
  const due = "id quarterly-billing: 1,500 calls on 3 days, at most 92 days apart, the last on " +
    "2027-04-06; silent for longer than that from 2027-07-08 on";
  const lines = gateText(called).split("\n");
  assertEquals(lines.slice(0, 4), [
    "Still called: no calls to /audio/:token and /video/:token from 2027-05-16 to 2027-06-15T12:00:00Z " +
    "(30 whole days and part of 2027-06-15, UTC), but 1 client calls more rarely: id quarterly-billing.",
    "/audio/:token: called, by the rhythm of 1 client",
    `  ${due}`,
    "/video/:token: clear",
  ]);
  const json = JSON.parse(usageJson(called));
  assertEquals(json.due[0].silentFrom, "2027-07-08");
  assertEquals(json.verdicts.map(({ due }: { due: unknown[] }) => due.length), [1, 0]);
  assertMatch(
    usagePage(called),
    /<li>id quarterly-billing: 1,500 calls to \/audio\/\{token\} on 3 days, at most 92 days apart/,
  );
  const both = await report([...rows, row(0, "app curl", 2)], TEN_MONTHS, BY_RHYTHM);
  assertMatch(
    gateText(both),
    /^Still called: 2 calls to .* the last by app curl recorded at 2027-06-15T12:00:00Z; and 1 client calls more rarely: id quarterly-billing\.\n {2}app curl, .*\n {2}id quarterly/,
  );
  const most = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, routes: undefined, atMost: 999 });
  const allowed = gateText(most);
  assertMatch(
    allowed,
    /^Clear: no calls to .*, 1 client is due by its rhythm, with 500 calls on its last day, .*\n\/audio\/:token: clear, 1 client is due by its rhythm, with 500 calls on its last day, at most 999 allowed\n/,
  );
  assertStringIncludes(allowed, `\n  ${due}\n`);
});

Deno.test("a clear verdict names who last called before the period, and how far back it sees", async () => {
  const rows = [
    ...on("id a", 93, 185, 277),
    ...on("id b", 40),
    ...on("id c", 35, 36),
    ...on("id d", 3),
    row(50, "id b", 2, { route: "/video/:token" }),
  ];
  const { verdicts, ...all } = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, routes: undefined });
  assertEquals(verdicts.map(({ state }) => state), ["called", "clear"]);
  assertEquals(
    gateText({ verdicts, ...all }).split("\n").slice(-4, -1),
    [
      "Left out: 1 client that last called before 2027-05-16:",
      "  id b: 2 calls to /video/:token on 2027-04-26",
      "On record since 2026-08-19: jobs more than 100 days apart are not on it, or not with the three " +
      "days that show a rhythm.",
    ],
  );
  const clear = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, ignore: ["id d"] });
  const text = gateText(clear);
  const lines = [
    "Left out: 3 clients that last called before 2027-05-16, the latest first:",
    "  id c: 1,000 calls on 2 days from 2027-05-10 to 2027-05-11, at most 1 day apart",
    "  id b: 500 calls on 2027-05-06",
    "  id a: 1,500 calls on 3 days from 2026-09-11 to 2027-03-14, at most 92 days apart",
    "On record since ",
  ];
  assertStringIncludes(text, lines.join("\n"));
  const json = JSON.parse(usageJson(clear));
  assertEquals(json.earlier.map(({ client }: { client: string }) => client), [
    "id c",
    "id b",
    "id a",
  ]);
  assertEquals(json.onRecordSince, "2026-08-19T12:00:00.000Z");
  const page = usagePage(clear);
  for (const client of ["id a", "id b", "id c"]) assertStringIncludes(page, client);

  const many = Array.from({ length: 9 }, (_, index) => on(`id ${index}`, 40 + index)).flat();
  const listed = await report(many, TEN_MONTHS, BY_RHYTHM);
  assertMatch(
    gateText(listed),
    /: 9 clients .*\n {2}id 0: .*\n(?: {2}id .*\n){4} {2}and 4 more, which --json lists\n/,
  );
});

Deno.test("a sunset that has not passed is said beside a clear verdict, and in the JSON", async () => {
  const sunsetAt = Date.parse("2027-06-17");
  for (const [sunset, expected] of [[sunsetAt, true], [Date.parse("2027-06-15"), false]] as const) {
    const policies = { "/audio/:token": { ...POLICY, sunsetAt: sunset } };
    const clear = await report([], [running(1000, { policies })]);
    assertEquals(clear.verdict.state, "clear", "the verdict is on calls");
    assertEquals(gateText(clear).includes("\nAnnounced until 2027-06-17"), expected);
    const json = JSON.parse(usageJson(clear));
    const announced = expected ? "2027-06-17T00:00:00.000Z" : undefined;
    assertEquals([json.announcedUntil, json.verdicts[0].announcedUntil], [announced, announced]);
  }
  const called = gateText(await report([row(0, "curl", 1)], TEN_MONTHS, { routes: AUDIO }));
  assert(!called.includes("Announced"), "nobody would delete it");
});

Deno.test("whoever was answered 4xx is named beside the verdict", async () => {
  const other = (client: string, status: string, calls: number, more: Partial<UsageRow> = {}) =>
    row(1, client, calls, { status, impact: "none", ...more });
  const rows = [
    other("app AcmeERP", "404", 20),
    other("app AcmeERP", "404", 5, { route: "/video/:token" }),
    other("app b", "401", 1),
    other("app c", "2xx", 9),
    other("app d", "404", 9, { method: "OPTIONS" }),
    other("probe a", "404", 9),
    row(31, "app e", 9, { status: "404", impact: "none" }),
    other("app f", "404", 7),
  ];
  const clear = await report(rows, TEN_MONTHS, { days: 30, ignore: ["app f"] });
  const lines = [
    "1 other request by 1 client was answered 401: app b",
    "25 other requests by 1 client were answered 404: app AcmeERP",
  ];
  assertStringIncludes(gateText(clear), `\n${lines.join("\n")}\n`);
  for (const line of lines) assertStringIncludes(usagePage(clear), `<li>${line}</li>`);
  const { clientErrors } = JSON.parse(usageJson(clear));
  assertEquals(clientErrors, [
    { route: "/audio/:token", status: "404", client: "app AcmeERP", requests: 20 },
    { route: "/video/:token", status: "404", client: "app AcmeERP", requests: 5 },
    { route: "/audio/:token", status: "401", client: "app b", requests: 1 },
  ]);
  const one = await report(rows, TEN_MONTHS, { days: 30, routes: ["/video/:token"] });
  assertMatch(gateText(one), /\n5 other requests by 1 client were answered 404: app AcmeERP\n/);
});

Deno.test("a doubt older than the period leaves only rare clients unknown, by name", async () => {
  const rows = [
    ...on("id a", 100, 192, 284),
    ...on("id b", 40, 41, 42),
    ...on("id c", 100, 140, 180), // whose rhythm begins after the stop
  ];
  const unknown = await report(rows, stopped(50, 49), BY_RHYTHM);
  const text = gateText(unknown);
  assertStringIncludes(
    text,
    "\n  Only clients that call more rarely than that may have called meanwhile:\n" +
      "    id a: 1,500 calls on 3 days from 2026-09-04 to 2027-03-07, at most 92 days apart\n",
  );
  const { uncertain, left, recovery } = JSON.parse(usageJson(unknown));
  assertEquals([uncertain.length, left, recovery], [1, [], "2027-07-29"]);
  // It is as said.
  const [before, after] = stopped(50, 49) as [Session, Session];
  for (const [day, expected] of [["2027-07-28", "unknown"], ["2027-07-29", "clear"]] as const) {
    const now = Date.parse(day) + HOUR;
    const sessions = [before, { ...after, reported: now + 1 }];
    const asked = await report(rows, sessions, { ...BY_RHYTHM, now });
    assertEquals(asked.verdict.state, expected, gateText(asked));
  }
  const both = gateText(await report(rows, stopped(50, 49), { ...BY_RHYTHM, routes: undefined }));
  assertMatch(
    both,
    /\n\/audio\/:token: unknown, no calls counted, but id a may have called: no server /,
  );
  assertMatch(both, /\n\/video\/:token: clear\n/);
});

Deno.test("a rhythm longer than the retention of counts is known, and blocks for no longer", async () => {
  const kept = { ...BY_RHYTHM, started: Date.parse("2026-05-11") }; // 400 days before
  for (const [daysAgo, expected] of [[450, "called"], [451, "clear"]] as const) {
    const rows = on("id a", daysAgo, daysAgo + 450, daysAgo + 550);
    const asked = await report(rows, [running(401 * 24)], kept);
    assertEquals(asked.verdict.state, expected, gateText(asked));
    assertEquals(asked.onRecordSince, Date.parse(rows[2]?.day ?? ""), "its days are on record");
  }
});

Deno.test("a retention shorter than the period says so at once", async () => {
  const short = await report([], [running(1)], { days: 30, retainDays: 20, routes: AUDIO });
  assertMatch(
    gateText(short),
    /, and USAGE_DAYS=20 never keeps the 30 whole days that the period has: raise it, or ask for fewer days\n/,
  );
  assertEquals(short.recovery, undefined, "that date would move on for ever");
});

Deno.test("no client on record goes unnamed, in the period or outside", async () => {
  const random = randomFrom(72);
  const oneOf = <Each>(all: readonly Each[]) => all[Math.floor(random() * all.length)] as Each;
  for (let world = 0; world < 200; world++) {
    const rows = Array.from({ length: Math.floor(random() * 12) }, () => {
      const client = oneOf(["id a", "id b", "app c", "(other)", "(no User-Agent)"]);
      const route = oneOf(["/audio/:token", "/video/:token"]);
      return row(Math.floor(random() * 300), client, 1, { route });
    }).sort((a, b) => a.day < b.day ? -1 : 1);
    const question = { days: 1 + Math.floor(random() * 290), isByRhythm: random() < 0.5 };
    const whole = await report(rows, TEN_MONTHS, question);
    const text = gateText(whole);
    for (const { route, clients, due, earlier, state } of whole.verdicts) {
      const named = [...clients, ...due, ...earlier].map(({ client }) => client);
      const called = rows.filter((row) => row.route === route).map(({ client }) => client);
      assertEquals(named.toSorted(), [...new Set(called)].sort(), "each of them once");
      assertEquals(state, clients.length + due.length > 0 ? "called" : "clear");
      const [latest] = state === "clear" ? earlier : [];
      if (latest !== undefined) assertStringIncludes(text, `\n  ${latest.client}: `);
    }
  }
});

/** Opens a record that a server keeps for 400 days, and flushes once a day. */
async function openRecord() {
  const database = await openLedgerDatabase();
  const clock = { now: Date.parse("2027-01-01") };
  const ledger = ledgerAt(database, () => clock.now, () => "'A'");
  let session = await begin(ledger, "a", {}, { "/audio/:token": POLICY });
  const flush = async (clients: readonly string[]) => {
    const counts = clients.map((client) => ({ ...COUNT, client, calls: 1 }));
    const part = { counts, at: clock.now, heartbeat: { intents: undefined, isStopped: false } };
    assert(await ledger.add(part, session, FOREVER) !== undefined, "it is recorded");
    session = { ...session, sequence: session.sequence + 1, reported: clock.now };
  };
  return {
    flush,
    /** Lets the next day begin. */
    async beginDay() {
      clock.now += DAY;
      await flush([]);
      await ledger.forget(dayOf(clock.now - 400 * DAY), clock.now);
    },
    async ask(): Promise<Verdict["state"]> {
      const question = { ...BY_RHYTHM, isGate: true, now: clock.now };
      const report = await reportUsage(ledger, { ...question, ...await readSessions(ledger) });
      return report.verdict.state;
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

Deno.test("a client of any period up to a year is called while it lives, and no longer than that afterwards", async () => {
  const random = randomFrom(72);
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  const lives: [period: number, first: number, end: number][] = [
    [365, 40, 1_200],
    [365, 5, 800],
    [1, 1, 1_200],
    ...Array.from({ length: 4 }, (): [number, number, number] => {
      return [upTo(365), upTo(40), 800 + upTo(400)];
    }),
  ];
  for (const [period, first, end] of lives) {
    const what = `every ${period} days from ${first} to ${end}, day`;
    await using record = await openRecord();
    let [called, last] = [0, 0];
    for (let day = 1; day <= end; day++) {
      await record.beginDay();
      const isCalling = day >= first && (day - first) % period === 0;
      // The silence is longest at the beginning of a day with a call.
      if (called >= 3 && (isCalling || day % 97 === 0)) {
        assertEquals(await record.ask(), "called", `${what} ${day}`);
      }
      if (!isCalling) continue;
      [called, last] = [called + 1, day];
      await record.flush(["id a"]);
    }
    assert(called >= 3, "it has a rhythm");
    const silence = Math.max(30, period);
    for (let day = end + 1; day <= last + silence + 1; day++) {
      await record.beginDay();
      const expected = day <= last + silence ? "called" : "clear";
      if (day >= last + silence) assertEquals(await record.ask(), expected, `${what} ${day}`);
    }
  }
});
