/** What sessions announce: of which routes, and until when. */

import { assertEquals } from "@std/assert";
import type { RecordedHold } from "../../../lib/usage/record/holds.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import {
  judgedRoutes,
  latestSession,
  latestSunset,
} from "../../../lib/usage/verdict/announcements.ts";
import {
  AUDIO as ROUTE,
  DAY,
  NOW,
  POLICIES,
  POLICY,
  read,
  report,
  running,
  session,
  stopped,
} from "../../support/usage_report.ts";

Deno.test("latestSession() returns the one that began last, of a running process if there is one", () => {
  const [first, second] = [running(9, { id: "first" }), running(8, { id: "second" })].map(read);
  const tried = read(session(2, 1, { id: "tried", ended: "stopped" }));
  assertEquals(latestSession([first, second, tried] as typeof tried[])?.id, "second");
  assertEquals(latestSession([read(session(9, 8)), tried])?.id, "tried");
  assertEquals(latestSession([]), undefined);
});

Deno.test("judgedRoutes() returns those of running processes, else of the last that had any", () => {
  const ended = read(session(9, 8, { ended: "stopped" }));
  const empty = read(session(2, 1, { policies: {}, ended: "stopped" }));
  const open = read(running(3, { policies: { "/v1": POLICY } }));
  assertEquals(judgedRoutes([ended, empty]), Object.keys(POLICIES));
  assertEquals(judgedRoutes([ended, read(running(3, { policies: {} })), empty]), [
    ...Object.keys(POLICIES),
  ]);
  assertEquals(judgedRoutes([ended, open, empty]), ["/v1"]);
  assertEquals(judgedRoutes([empty]), []);
});

const until = (day?: string) => {
  const sunsetAt = day === undefined ? undefined : Date.parse(day);
  return { policies: { [ROUTE]: { ...POLICY, sunsetAt } } };
};
const hold = (more: Partial<RecordedHold> = {}): RecordedHold => {
  const times = { since: NOW - 6 * DAY, until: Date.parse("2027-06-20"), released: undefined };
  return { id: "hold", route: undefined, because: "b", ...times, ...more };
};
const ended = (began: number, reported: number, day?: string) =>
  stopped(began, reported, until(day));

const EARLIER = until("2027-06-10");

/** What sessions announced, and until when the verdict on the last seven days is announced. */
const ROWS: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  announced: string | undefined,
  holds?: readonly RecordedHold[],
])[] = [
  ["no date", [running(999, until())], undefined],
  ["a date", [running(999, until("2027-06-17"))], "2027-06-17"],
  ["one that has passed", [running(999, until("2027-06-14"))], undefined],
  ["the latest", [running(999, until("2027-06-17")), ended(99, 9, "2027-06-19")], "2027-06-19"],
  ["it was moved forward", [running(9, EARLIER), ended(999, 9, "2027-06-17")], "2027-06-17"],
  ["before the period", [running(400, EARLIER), ended(999, 400, "2027-06-17")], undefined],
  ["at its start", [running(180, EARLIER), ended(999, 180, "2027-06-17")], "2027-06-17"],
  ["a hold puts it off", [running(999, until("2027-06-17"))], "2027-06-20", [hold()]],
  ["of this route", [running(999, until("2027-06-17"))], "2027-06-20", [hold({ route: ROUTE })]],
  ["of another", [running(999, until("2027-06-17"))], "2027-06-17", [hold({ route: "/v2" })]],
  ["released", [running(999, until("2027-06-17"))], "2027-06-17", [hold({ released: NOW })]],
  ["after it has passed", [running(999, until("2027-06-14"))], "2027-06-20", [hold()]],
];

for (const [what, sessions, announced, holds = []] of ROWS) {
  Deno.test(`a verdict is announced until the latest sunset of its period: ${what}`, async () => {
    const of = await report([], sessions, { routes: [ROUTE], holds });
    const expected = announced === undefined ? undefined : Date.parse(announced);
    assertEquals(of.verdicts.map(({ announcedUntil }) => announcedUntil), [expected]);
    assertEquals(of.announcedUntil, expected);
    assertEquals(of.state, announced === undefined ? "clear" : "announced");
  });
}

Deno.test("latestSunset() is of no route that sessions do not announce", () => {
  const sessions = [read(running(9, until("2027-06-17")))];
  const from = { since: 0, holds: [] };
  assertEquals(latestSunset(sessions, ROUTE, from), Date.parse("2027-06-17"));
  assertEquals(latestSunset(sessions, "constructor", from), undefined);
});
