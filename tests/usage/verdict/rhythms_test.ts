/** The gate without a number: each client is asked for its own longest pause. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { dayOf } from "../../../lib/http/timestamp.ts";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import { readAllSessions } from "../../../lib/usage/verdict/evidence.ts";
import { reportUsage } from "../../../lib/usage/verdict/report.ts";
import type { State } from "../../../lib/usage/verdict/verdict.ts";
import { COUNT, DAY } from "../../support/counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "../../support/ledger_at.ts";
import { begin, HEARTBEAT } from "../../support/ledger_rows.ts";
import { randomFrom } from "../../support/random.ts";
import { FEWEST_SEEDS, SEEDS } from "../../support/seeds.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import { report, row, running, stopped as ended, UNDATED } from "../../support/usage_report.ts";

const POLICIES = { "/audio/:token": UNDATED, "/video/:token": UNDATED };
const AUDIO = ["/audio/:token"];
/** A process that has counted for ten months. */
const TEN_MONTHS = [running(300 * 24, { policies: POLICIES })];
const BY_RHYTHM = { days: 30, isByRhythm: true, routes: AUDIO } as const;
const on = (client: string, ...days: number[]) => days.map((day) => row(day, client, 500));
const stopped = (from: number, to: number): Session[] => [
  ended(300 * 24, from * 24, { policies: POLICIES }),
  running(to * 24, { policies: POLICIES }),
];

/** What clients did, and what the gate says with and without a number. */
const SCENES: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  byRhythm: State,
  fixed: State,
  sessions?: readonly Session[],
  ignore?: string[],
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
  ["a client that is ignored", on("id a", 92, 184, 276), "clear", "clear", TEN_MONTHS, ["id a"]],
  ["a call within 30 days", on("id a", 30), "called", "called"],
  [
    "a stop that a rhythm reaches back to",
    on("id a", 100, 192, 284),
    "clear",
    "clear",
    stopped(60, 45),
  ],
  ["a stop within 30 days", [], "unknown", "unknown", stopped(20, 19)],
];

for (const [what, rows, byRhythm, fixed, sessions = TEN_MONTHS, ignore = []] of SCENES) {
  Deno.test(`the gate asks for each client's rhythm, or for days: ${what}`, async () => {
    const asked = await report(rows, sessions, { ...BY_RHYTHM, ignore });
    assertEquals(asked.state, byRhythm, gateText(asked));
    const days = await report(rows, sessions, { ...BY_RHYTHM, ignore, isByRhythm: false });
    assertEquals(days.state, fixed, gateText(days));
    for (const each of [asked, days]) {
      const isSaid = gateText(each).includes(", and no client is due by its rhythm.\n");
      assertEquals(isSaid, each.state === "clear" && each.isByRhythm, gateText(each));
    }
  });
}

Deno.test("a client that is due is named with its rhythm, and the day from which it is silent", async () => {
  const rows = on("id quarterly-billing", 70, 162, 254);
  const called = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, routes: undefined });
  const due = (route: string) =>
    `id quarterly-billing: 1,500 calls${route} on 3 days, at most 92 days apart, the last on `;
  assertEquals(gateText(called).split("\n").slice(0, 3), [
    "Still called: no call on record to /audio/:token and /video/:token from 2027-05-16 (as of" +
    " 2027-06-15T12:00:00Z), but 1 client that calls more rarely may call again: id quarterly-billing.",
    "/audio/:token: called, by the rhythm of 1 client",
    "/video/:token: clear",
  ]);
  assertStringIncludes(
    usageText(called),
    `\n  ${due("")}2027-04-06; silent for longer than that from 2027-07-08 on\n`,
  );
  const json = JSON.parse(usageJson(called));
  assertEquals(json.due[0].silentFrom, "2027-07-08");
  assertEquals(json.verdicts.map(({ due }: { due: unknown[] }) => due.length), [1, 0]);
  const page = usagePage(called);
  assertMatch(page, /<h2>Who may call again<\/h2>\n<ul>\n<li>id quarterly-billing: 1,500 calls/);
  assertStringIncludes(page, `<li>${due(" to <code>/audio/{token}</code>")}`);
  const both = await report([...rows, row(0, "app curl", 2)], TEN_MONTHS, BY_RHYTHM);
  assertMatch(
    gateText(both),
    /^Still called: 2 calls to .* the last by app curl recorded at 2027-06-15T12:00:00Z; and 1 client that calls more rarely may call again: id quarterly-billing\.\n/,
  );
  const many = Array.from({ length: 26 }, (_, index) => on(`id ${index}`, 70, 162, 254)).flat();
  assertMatch(
    usageText(await report(many, TEN_MONTHS, BY_RHYTHM)),
    /\n(?: {2}id .*\n){25} {2}and 1 more client by their rhythm\n/,
  );
});

Deno.test("a clear verdict names who last called before the period, and how far back it sees", async () => {
  const rows = [
    ...on("id a", 93, 185, 277),
    ...on("id b", 40),
    ...on("id c", 35, 36),
    ...on("id d", 3),
    row(50, "id b", 2, { route: "/video/:token" }),
  ];
  const rare =
    "The record starts on 2026-08-19: a client that calls less often than every 100 days may " +
    "not have shown its rhythm yet.";
  const both = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, routes: undefined });
  assertEquals(both.verdicts.map(({ state }) => state), ["called", "clear"]);
  assertEquals(gateText(both).split("\n").slice(-3, -1), [
    "1 client last called /video/:token before 2027-05-16: id b",
    rare,
  ]);
  const clear = await report(rows, TEN_MONTHS, { ...BY_RHYTHM, ignore: ["id d"] });
  assertStringIncludes(
    gateText(clear),
    "\n3 clients last called /audio/:token before 2027-05-16: id c, id b, id a\n",
  );
  const lines = [
    "3 clients last called /audio/:token before 2027-05-16:",
    "  id c: 1,000 calls on 2 days from 2027-05-10 to 2027-05-11, at most 1 day apart",
    "  id b: 500 calls on 2027-05-06",
    "  id a: 1,500 calls on 3 days from 2026-09-11 to 2027-03-14, at most 92 days apart",
    rare,
  ];
  assertStringIncludes(usageText(clear), lines.join("\n"));
  const json = JSON.parse(usageJson(clear));
  const names = json.earlier.map(({ client }: { client: string }) => client);
  assertEquals(names, ["id c", "id b", "id a"]);
  assertEquals(json.onRecordSince, "2026-08-19T12:00:00.000Z");
  const page = usagePage(clear);
  for (const client of names) assertStringIncludes(page, client);

  const many = Array.from({ length: 9 }, (_, index) => on(`id ${index}`, 40 + index)).flat();
  const listed = await report(many, TEN_MONTHS, BY_RHYTHM);
  assertMatch(
    usageText(listed),
    /\n9 clients .*\n {2}id 0: .*\n(?: {2}id .*\n){4} {2}and 4 more, which --json lists\n/,
  );
  assertMatch(gateText(listed), /: id 0, id 1, id 2, id 3, id 4, and 4 more clients\n/);
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

Deno.test("a rhythm longer than the retention of counts is known, and blocks for no longer", async () => {
  const kept = { ...BY_RHYTHM, started: Date.parse("2026-05-11") }; // 400 days before
  for (const [daysAgo, expected] of [[450, "called"], [451, "clear"]] as const) {
    const rows = on("id a", daysAgo, daysAgo + 450, daysAgo + 550);
    const asked = await report(rows, [running(401 * 24, { policies: POLICIES })], kept);
    assertEquals(asked.state, expected, gateText(asked));
    assertEquals(asked.onRecordSince, Date.parse(rows[2]?.day ?? ""), "its days are on record");
  }
});

Deno.test("no client on record goes unnamed, in the period or outside", async () => {
  for (const seed of SEEDS) {
    const random = randomFrom(seed);
    const oneOf = <Each>(all: readonly Each[]) => all[Math.floor(random() * all.length)] as Each;
    const rows = Array.from({ length: Math.floor(random() * 12) }, () => {
      const client = oneOf(["id a", "id b", "app c", "(other)", "(no User-Agent)"]);
      const route = oneOf(["/audio/:token", "/video/:token"]);
      return row(Math.floor(random() * 300), client, 1, { route });
    }).sort((a, b) => a.day < b.day ? -1 : 1);
    const question = { days: 1 + Math.floor(random() * 290), isByRhythm: random() < 0.5 };
    const whole = await report(rows, TEN_MONTHS, question);
    const text = usageText(whole);
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

/** Opens a record that a process keeps for 400 days, with a heartbeat each day. */
async function openRecord() {
  const database = await openLedgerDatabase();
  const clock = { now: Date.parse("2027-01-01") };
  const ledger = ledgerAt(database, () => clock.now);
  const policies = { "/audio/:token": UNDATED };
  let { id, sequence } = await begin(ledger, { policies });
  const flush = async (clients: readonly string[]) => {
    const counts = clients.map((client) => ({ ...COUNT, client, calls: 1 }));
    const part = { ...HEARTBEAT, counts, before: clock.now };
    assert(await ledger.write(part, { id, sequence }, undefined) !== undefined, "it is recorded");
    sequence++;
  };
  return {
    flush,
    /** Lets the next day begin. */
    async beginDay() {
      clock.now += DAY;
      await flush([]);
      await ledger.forget(dayOf(clock.now - 400 * DAY), clock.now);
    },
    async ask(): Promise<State> {
      const sources = [{ ledger, name: "the record" }];
      return (await reportUsage(sources, await readAllSessions(sources), BY_RHYTHM)).state;
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

Deno.test("a client of any period up to a year is called while it lives, and no longer than that afterwards", async () => {
  const random = randomFrom(72);
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  const lives: [period: number, first: number, end: number][] = [
    [365, 40, 1_200],
    [1, 1, 450],
    ...FEWEST_SEEDS.map((): [number, number, number] => {
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
