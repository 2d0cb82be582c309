/** What a copy makes of an older record: its doubts, and the start of the record. */

import { assertEquals } from "@std/assert";
import { startOf } from "../../../lib/usage/moving/copy_record.ts";
import {
  type ClosedRecord,
  intentsOf,
  type OwnRecord,
} from "../../../lib/usage/moving/old_doubts.ts";
import { LEASE_MS } from "../../../lib/usage/record/records.ts";
import { DAY, HOUR, intent, NOW, session } from "../../support/usage_report.ts";

/** An older record with one server, which stopped an hour ago, just before another one began here. */
const OLD: ClosedRecord = {
  closing: { id: "copy", into: "NEW", at: NOW },
  sessions: [session(100, 1, { id: "old", ended: "stopped" })],
  intents: [],
  silences: [],
  started: NOW - 100 * HOUR,
  time: { databaseTime: NOW, now: NOW },
  timeline: "7-1",
};
const OWN: OwnRecord = {
  sessions: [session(1, 0, { id: "own" })],
  started: NOW - HOUR,
  now: NOW,
};

Deno.test("intentsOf() returns the doubts that sessions elsewhere would hide", () => {
  const killed = { id: "old", ended: undefined } as const;
  const early = { ...OWN, sessions: [session(99, 0)], started: NOW - 99 * HOUR };
  const [ago, at] = [(hours: number) => NOW - hours * HOUR, NOW];
  const rows: [what: string, old: Partial<ClosedRecord>, own: OwnRecord, [number, number][]][] = [
    ["every process stopped, and another one began", {}, OWN, []],
    ["one was killed then", { sessions: [session(100, 1, killed)] }, OWN, [[ago(1), at]]],
    [
      "one was killed, and another one began later",
      {
        sessions: [session(100, 1 + 1 / 60, killed)],
      },
      OWN,
      [],
    ],
    [
      "one was killed long before the last heartbeat",
      {
        sessions: [session(100, 50, { ...killed, id: "x" }), ...OLD.sessions],
      },
      OWN,
      [],
    ],
    ["nobody is here yet", { sessions: [session(100, 1, killed)] }, {
      ...OWN,
      sessions: [],
      started: undefined,
    }, []],
    ["processes were here and there, and it was copied later", {}, early, [[ago(1), at]]],
    [
      "there was a stop there only",
      {
        sessions: [session(100, 50, { id: "x" }), session(49, 0, { id: "y", ended: "stopped" })],
      },
      early,
      [[ago(50), ago(49)]],
    ],
    [
      "it was started again in that stop",
      {
        sessions: [session(100, 60, { id: "x" }), session(49, 0, { id: "y", ended: "stopped" })],
        started: ago(50),
      },
      early,
      [[ago(50), ago(49) + LEASE_MS]],
    ],
    ["there was a stop here only", {}, {
      ...early,
      sessions: [session(99, 50, { id: "x" }), session(40, 0, { id: "y" })],
    }, [[ago(1), at], [ago(50), ago(40)]]],
    ["nobody is here any more", {}, { ...early, sessions: [session(99, 50)] }, [
      [ago(1), at],
      [ago(50), at],
    ]],
    [
      "there was a restore",
      {
        sessions: [
          session(100, 50, { id: "x", ended: "stopped" }),
          session(50, 1, { id: "y", ended: "stopped", timeline: "7-2" }),
        ],
        timeline: "7-2",
      },
      OWN,
      [[ago(50), ago(50) + LEASE_MS]],
    ],
    ["it was restored after its last heartbeat", { timeline: "7-2" }, OWN, [[
      ago(1),
      at + LEASE_MS,
    ]]],
    ["a process answered calls when it was killed", { intents: [intent("old", 10)] }, OWN, [
      [ago(10), ago(10) + LEASE_MS + HOUR], // nobody counted for the last hour
    ]],
    [
      "a process of schema 9 is silent",
      {
        silences: [{ session: "old", reported: ago(90), until: undefined }],
      },
      OWN,
      [[ago(90), at]],
    ],
    [
      "a process of schema 9 was declared gone",
      {
        silences: [{ session: "old", reported: ago(90), until: ago(80) }],
      },
      OWN,
      [[ago(90), ago(80)]],
    ],
  ];
  for (const [what, old, own, expected] of rows) {
    const intents = intentsOf({ ...OLD, ...old }, own).filter(({ route }) =>
      route.startsWith("/audio")
    );
    assertEquals(intents.map(({ settled, until }) => [settled, until]), expected, what);
    assertEquals(new Set(intents.map(({ since }) => since)).size, expected.length > 0 ? 1 : 0);
  }
});

Deno.test("startOf() is the first session of both records, unless one was started again", () => {
  const [days, ago] = [24, (hours: number) => NOW - hours * HOUR];
  const own = (began: number, started: number | undefined = ago(began), retainDays = 400) => ({
    sessions: [session(began, 0, { retainDays })],
    started,
    now: NOW,
  });
  const old = (began: number, started: number | undefined = ago(began)) => ({
    sessions: [session(began, 30)],
    started,
  });
  const rows: [what: string, Parameters<typeof startOf>[0], OwnRecord, number][] = [
    ["a new record", old(100), { sessions: [], started: undefined, now: NOW }, ago(100)],
    ["a record in use", old(100), own(20), ago(100)],
    ["a record in use for longer", old(100), own(200), ago(200)],
    ["the older one was started again", old(100, ago(70)), own(20), ago(70)],
    ["that starts in the future", old(100, NOW + DAY), own(20), NOW + DAY],
    ["and the one in use is as old", old(100, ago(70)), own(200), ago(70)],
    ["the one in use was started again", old(100), own(20, ago(10)), ago(10)],
    ["so were both", old(100, ago(70)), own(20, ago(10)), ago(10)],
    ["before anybody registered", old(100), own(20, ago(21)), ago(21)],
    ["it was not, but the session was sent twice", old(100), own(20, ago(20) - 59_999), ago(100)],
    ["days were deleted there", old(36), own(200), ago(36)], // until a midnight
    ["days are deleted here", old(50 * days), own(20, ago(20), 30), Date.parse("2027-05-16")],
  ];
  for (const [what, older, used, expected] of rows) {
    assertEquals(startOf(older, used), expected, what);
  }
});
