import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Policy } from "../../../lib/lifecycle/policy.ts";
import type { Interval } from "../../../lib/lifecycle/instant.ts";
import { ownerPage } from "../../../lib/usage/output/owner_page.ts";
import type { RecordedHold } from "../../../lib/usage/record/holds.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  HOUR,
  intent,
  POLICY,
  PROGRAM,
  report,
  row,
  ROWS,
  running,
  session,
} from "../../support/usage_report.ts";

/** How a session names its process. */
const NAMED = "process 4711 on web-1, started at 2027-01-31T12:00:00Z";

Deno.test("usageText() shows the calls per day, the clients, the sunset and the verdict", async () => {
  const text = usageText(await report(ROWS, ALWAYS));
  const parts = [
    "\n\nCalls to deprecated routes from 2027-06-08 to 2027-06-15T12:00:00Z (7 whole days and part of" +
    " 2027-06-15, UTC)\nMade at 2027-06-15T12:00:00Z. The record is complete since 2027-05-04T20:00:00Z; earlier calls may be missing.\n",
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
    "Still called: 96 calls to /audio/:token and /video/:token by 2 clients from 2027-06-08 to" +
    " 2027-06-15T12:00:00Z (7 whole days and part of 2027-06-15, UTC), the last by Overcast recorded at 2027-06-15T12:00:00Z.",
    "A brownout is a short planned outage that warns clients of the removal.",
  ];
  for (const part of parts) assertStringIncludes(text, part);
  assert(text.startsWith("Still called: "), "the verdict comes first");
  for (const client of ["Overcast", "curl"]) {
    const named = text.split("\n").filter((line) => line.includes(`  ${client} `));
    assertEquals(named.length, 1, "a client stands once");
  }
  assert(!text.includes("incomplete"));
  const restarting = usageText(
    await report([], [session(1000, 1 / 120, { ended: "stopped" })]),
  );
  assert(!restarting.includes("incomplete"));
  const without = usageText(await report(ROWS, [running(100)]));
  assertMatch(without, /\n {2}2027-06-09 {3}5 .* {2}incomplete record\n {2}2027-06-12 {3}0\n/);
  const first = usageText(await report([], [running(1)], { days: 30 }));
  assert(!first.includes("by day"), "nobody called");
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
  for (const text of [usageText(made), gateText(made)]) {
    for (const line of [audio, both]) assertStringIncludes(text, `\n${line}\n`);
    assert(!text.includes("before"));
  }
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
  const owner = ownerPage({ ...made, client: "curl", clients }, { sessions: ALWAYS });
  assertMatch(owner, /Held until <time[^>]*>10 Jun 2027, 12:00 UTC<\/time> \(billing is down\): /);
});

Deno.test("gateText() lists up to 25 remaining clients, or up to 25 gaps", async () => {
  const clients = Array.from({ length: 27 }, (_, index) => row(index / 24, `client-${index}`, 1));
  const routes = ["/audio/:token"];
  const called = gateText(await report(clients, ALWAYS, { routes })).split("\n");
  assertEquals(called.length, 1 + 25 + 1 + 1);
  assertEquals(
    called[1],
    "  client-0, 1 call on 1 day, last recorded at 2027-06-15T12:00:00Z (deprecated)",
  );
  assertEquals(called.at(-2), "  and 2 more clients");
  assertEquals(
    gateText(await report(clients.slice(0, 25), ALWAYS, { routes })).split("\n").length,
    27,
  );

  const restarts = Array.from({ length: 28 }, (_, index) => {
    const from = 300 - index * 2; // an hour on, an hour off
    return session(from, from - 1, { id: String(index), ended: "stopped" });
  });
  assertMatch(
    gateText(await report([], [...restarts, running(245)], { days: 14 })),
    /\(1 h 0 min\): no server was running \(see --trust-stops\)\n {2}and 3 more\n {2}With /,
  );

  const intents = [intent("b", 1.5)];
  const killed = [running(1000), session(2, 1, { id: "b" })];
  assertEquals(
    gateText(await report([], killed, { days: 2, intents })).split("\n").slice(0, 6),
    [
      "Unknown: no calls to /audio/:token and /video/:token counted from 2027-06-13 to" +
      " 2027-06-15T12:00:00Z (2 whole days and part of 2027-06-15, UTC), but some may be missing.",
      "  Session b (process 4711 on web-1, started at 2027-01-31T12:00:00Z) ended or was cut off while it" +
      " answered calls to /audio/:token; who called from 2027-06-15T10:30:00Z to 2027-06-16T10:30:00Z is" +
      " not on record (see --trust-stops)",
      "  With `--trust-stops`, if that is true, this would be clear.",
      "  Without it, the verdict cannot be clear before 2027-06-19.",
      "/audio/:token: unknown, no calls counted, but 1 process ended or was cut off while answering calls" +
      " to it",
      "/video/:token: clear",
    ],
  );
  const unknown = async (sessions: Session[], options = {}) =>
    gateText(await report([], sessions, { days: 2, ...options }));
  const served = session(9, 8, { id: "b", mayServeUnrecorded: true });
  assertMatch(
    await unknown([running(1000), served]),
    /\n {2}Session b \(.*\) may have served unrecorded calls after 2027-06-15T04:00:00Z \(see --trust-stops\)\n[^]*, but 1 process may have served unrecorded calls\n/,
  );
  assertMatch(
    await unknown([session(1000, 9), running(9, { id: "b", timeline: "7-2" })], {
      timeline: "7-2",
    }),
    /\n {2}The database was restored or failed over between 2027-06-15T03:00:00Z and 2027-06-15T03:00:00Z; calls may be lost \(see --trust-stops\)\n[^]*, but the database was restored or failed over\n/,
  );
  assertMatch(
    await unknown([session(1000, 9)]),
    /\n {2}No server counts \/audio\/:token and \/video\/:token now, and none has since 2027-06-15T03:00:00Z; is this the database that they use\?\n\/audio\/:token: unknown, no calls counted, but no server counts it now\n/,
  );
  const other = running(9, { id: "b", policies: { "/audio/:token": POLICY } });
  assertMatch(
    gateText(await report([], [running(1000), other])),
    /\n\/audio\/:token: clear\n\/video\/:token: unknown, no calls counted, but session b \(process 4711 on web-1, started at \S+\) does not count \/video\/:token: deprecate it on every server, or delete it/,
  );
  const ahead = gateText(await report([], ALWAYS, { lag: 3 * 24 * HOUR }));
  assertMatch(
    ahead,
    /\n {2}The latest heartbeat is dated 2027-06-15T12:00:05Z: the database's clock was ahead/,
  );
  assertMatch(ahead, /has fallen behind since\. If it is right, run: media usage --restart\n/);
  assert(!ahead.includes("wait until"));
  const unnamed = running(9, { process: { ...PROCESS, machine: undefined }, policies: {} });
  assertMatch(
    gateText(await report([], [running(1000), unnamed])),
    /session a \(process 4711, started at /,
  );
});

Deno.test("a clear verdict lists up to 25 trusted stops, and the sum of the others", async () => {
  const restarts = Array.from({ length: 207 }, (_, index) => {
    const from = 420 - index * 2; // an hour on, an hour off
    return session(from, from - 1, { id: String(index), ended: "stopped" });
  });
  const sessions = [session(1_000, 420, { ended: "stopped" }), ...restarts, running(420 - 207 * 2)];
  const text = gateText(await report([], sessions, { days: 18, trustStops: true }));
  const trusted = text.split("\n").filter((line) => line.startsWith("Trusted: "));
  assertEquals(trusted.length, 26);
  assertEquals(trusted.at(-1), "Trusted: 182 more stops (182 h 0 min in all)");
  assertMatch(text, /^Clear, on your word that during 207 stops \(207 h 0 min\) nothing else/m);

  const dead = Array.from({ length: 27 }, (_, index) => session(1_000, 100, { id: String(index) }));
  const intents = dead.map(({ id }) => intent(id, 101));
  const vouched = gateText(
    await report([], [running(1_000), ...dead], { intents, trustStops: true }),
  );
  assertEquals(vouched.match(/^Trusted: no caller of \/audio\/:token /gm)?.length, 25);
  assertMatch(vouched, /\nTrusted: 2 more\n/);
  assertMatch(vouched, /^Clear, .* though 27 processes ended or /m);
});

const ONLY_AUDIO = { policies: { "/audio/:token": POLICY } };

/** Why a verdict is unknown, what would help, and when it can be clear. */
const DOUBTS: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  lines: readonly string[],
  options?: Parameters<typeof report>[2],
])[] = [
  ["nobody has registered", [], ["  No server has registered yet"]],
  ["the record is new", [running(3)], [
    "  The record starts at 2027-06-15T09:00:00Z",
    "  The verdict cannot be clear before 2027-06-18.",
    "/audio/:token: unknown, no calls counted, but the record starts at 2027-06-15T09:00:00Z",
  ]],
  ["a stop", [session(1000, 9, { ended: "stopped" }), running(8, { id: "b" })], [
    "  2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h 0 min): no server was running (see --trust-stops)",
    "  With `--trust-stops`, if that is true, this would be clear.",
    "  Without it, the verdict cannot be clear before 2027-06-18.",
    "/audio/:token: unknown, no calls counted, but no server was running during 1 stop (1 h 0 min)",
  ]],
  ["a new record with a stop", [session(40, 9, { ended: "stopped" }), running(8, { id: "b" })], [
    "  With `--trust-stops`, if that is true, this could be clear from 2027-06-16.",
    "  Without it, the verdict cannot be clear before 2027-06-18.",
  ]],
  ["a call in flight", [running(1000)], [
    `  Session a (${NAMED}) has calls to /audio/:token in flight, or has yet to record them: ask again`,
    "/audio/:token: unknown, no calls counted, but calls to it are in flight",
  ], { intents: [intent("a", 1)] }],
  ["a route that a server did not count", [
    running(1000),
    session(9, 8, { id: "b", ended: "stopped", ...ONLY_AUDIO }),
  ], [
    `  Until 2027-06-15T04:00:00Z, session b (${NAMED}) did not count /video/:token`,
  ], { routes: ["/video/:token"] }],
  ["a route that a running server does not count", [
    running(1000),
    running(9, { id: "b", ...ONLY_AUDIO }),
  ], [
    `  Session b (${NAMED}) does not count /video/:token: deprecate it on every server, or delete it on every server`,
  ], { routes: ["/video/:token"] }],
  ["a killed server, and a call in flight", [running(1000), session(9, 8, { id: "b" })], [
    "  With `--trust-stops`, if that is true, this would still be unknown.",
  ], { intents: [intent("a", 1), intent("b", 9)] }],
  ["a killed server, beside a route that is called", [running(1000), session(9, 8, { id: "b" })], [
    "  With `--trust-stops`, if that is true, the unknown routes would be clear.",
    "  Without it, they cannot be clear before 2027-06-19.",
  ], { intents: [intent("b", 9, { route: "/video/:token" })] }],
];

for (const [what, sessions, lines, options] of DOUBTS) {
  Deno.test(`gateText() says why a verdict is unknown, and what would help: ${what}`, async () => {
    const rows = what.endsWith("is called") ? [row(0, "curl", 1)] : [];
    const text = gateText(await report(rows, sessions, { days: 2, ...options }));
    for (const line of lines) assertStringIncludes(`${text}\n`, `\n${line}\n`);
  });
}

Deno.test("the report says how a cache in front can be found, if nothing was probed", async () => {
  const covered = "A cache in front may hide others: ";
  assertStringIncludes(
    usageText(await report([], ALWAYS), { ...PROGRAM, howToProbe: undefined }),
    `${covered}the gate (--gate) checks for one.`,
  );
  assertStringIncludes(
    usageText(await report([], ALWAYS)),
    `${covered}set PUBLIC_URL, and the gate checks for one.`,
  );
});
