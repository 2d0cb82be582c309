import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { gateText, usageText } from "../../../lib/usage/output/text.ts";
import { PROCESS } from "../../support/counted_call.ts";
import {
  ALWAYS,
  HOUR,
  NOW,
  POLICY,
  report,
  row,
  ROWS,
  running,
  session,
} from "../../support/usage_report.ts";

Deno.test("usageText() shows the calls per day, the clients, the sunset and the verdict", async () => {
  const text = usageText(await report(ROWS, ALWAYS));
  const parts = [
    "Calls to deprecated routes from 2027-06-08 to 2027-06-15T12:00:00Z (7 whole days and part of" +
    " 2027-06-15, UTC)\nMade at 2027-06-15T12:00:00Z. The record is complete since 2027-05-04T20:00:00Z; earlier calls may be missing.\n",
    "\n/audio/:token: 36 calls and 12 other requests." +
    " Sunset: 2027-06-17T00:00:00Z.\n" +
    `  2027-06-08  30  ${"█".repeat(40)}\n` +
    `  2027-06-09   5  ${"█".repeat(7)}  brownout\n` +
    "  2027-06-10   0  brownout of 2027-06-10T09:00:00Z\n  2027-06-11   0\n",
    "\n  2027-06-15   1  ██  part of the day\n",
    "\n/video/:token: 60 calls. Sunset: 2027",
    "\nClient    Calls  First call  Last recorded on      Phases\n" +
    "curl         60  2027-06-10  2027-06-10T12:00:00Z  deprecated\n" +
    "Overcast     36  ",
    "\nStill called: 96 calls to /audio/:token and /video/:token by 2 clients from 2027-06-08 to" +
    " 2027-06-15T12:00:00Z (7 whole days and part of 2027-06-15, UTC), the last by Overcast recorded at 2027-06-15T12:00:00Z.",
  ];
  for (const part of parts) assertStringIncludes(text, part);
  assert(!text.includes("incomplete"));
  const restarting = usageText(
    await report([], [session(1000, 1 / 120, { ended: "stopped" })]),
  );
  assert(!restarting.includes("incomplete"));
  const without = usageText(await report(ROWS, [running(100)]));
  assertMatch(without, /\n {2}2027-06-09 {3}5 .* {2}incomplete record\n {2}2027-06-12 {3}0\n/);
  const first = usageText(await report([], [running(1)], { days: 30 }));
  assertEquals(first.match(/ {2}incomplete record\n/g)?.length, 2, first); // today, for two routes
  assert(usageText(await report([], [])).split("\n").length < 16);
});

Deno.test("gateText() lists up to 25 remaining clients, or up to 25 gaps", async () => {
  const clients = Array.from({ length: 27 }, (_, index) => row(index / 24, `client-${index}`, 1));
  const routes = ["/audio/:token"];
  const called = gateText(await report(clients, ALWAYS, { routes })).split("\n");
  assertEquals(called.length, 1 + 25 + 1 + 1);
  assertEquals(called[1], "  client-0, 1 call, last recorded at 2027-06-15T12:00:00Z (deprecated)");
  assertEquals(called.at(-2), "  and 2 more clients");
  assertEquals(
    gateText(await report(clients.slice(0, 25), ALWAYS, { routes })).split("\n").length,
    27,
  );

  const restarts = Array.from({ length: 28 }, (_, index) => {
    const from = 300 - index * 2; // an hour on, an hour off
    return session(from, from - 1, { id: String(index), ended: "stopped" });
  });
  const unknown = gateText(await report([], [...restarts, running(245)], { days: 14 }));
  assertMatch(
    unknown,
    /\(1 h 0 min\): no server was running \(see --trust-stops\)\n {2}and 3 more\n {2}With /,
  );

  assertEquals(
    gateText(await report([], [running(1000), session(2, 1, { id: "b" })], { days: 2 })),
    [
      "/audio/:token: unknown, no calls counted, but 1 server is silent",
      "/video/:token: unknown, no calls counted, but 1 server is silent",
      "Unknown: no calls to /audio/:token and /video/:token counted from 2027-06-13 to" +
      " 2027-06-15T12:00:00Z (2 whole days and part of 2027-06-15, UTC), but some may be missing.",
      "  Session b (process 4711 on web-1, started at 2027-01-31T12:00:00Z) has not reported since" +
      " 2027-06-15T11:00:00Z",
      "  A silent server may still be answering calls. Once its process has ended, run: media usage --gone" +
      " b --ended TIME",
      "  TIME is a time by which it had certainly ended, e.g. `2027-06-30T09:00:00Z`, as its supervisor's" +
      " log has it, or now if nobody knows better",
      "  With `--gone b --ended TIME`, if that is true, and TIME is within a minute of its last report," +
      " this would be clear.",
      "The verdict covers the calls that reached the servers. A cache in front may hide others: set" +
      " PUBLIC_URL, and the gate checks for one.",
    ].join("\n"),
  );
  const other = running(9, { id: "b", policies: { "/audio/:token": POLICY } });
  assertMatch(
    gateText(await report([], [running(1000), other])),
    /^\/audio\/:token: clear\n\/video\/:token: unknown, no calls counted, but session b \(process 4711 on web-1, started at \S+\) does not count \/video\/:token: deprecate it on every server, or delete it/,
  );
  const ahead = gateText(await report([], ALWAYS, { lag: 3 * 24 * HOUR }));
  assertMatch(
    ahead,
    /\n {2}The latest report is dated 2027-06-15T12:00:05Z: the database's clock was ahead/,
  );
  assertMatch(ahead, /has fallen behind since\. If it is right, run: media usage --restart\n/);
  assert(!ahead.includes("wait until"));
  const late = session(100, 40, { id: "b", ended: "gone", endedBy: NOW - 30 * HOUR });
  assertMatch(
    gateText(await report([], [running(1000), late], { days: 2 })),
    /\n {2}Until 2027-06-14T06:00:00Z, session b \(.*\) may have answered calls: it last reported at 2027-06-13T20:00:00Z, and had ended by 2027-06-14T06:00:00Z\n {2}The verdict cannot be clear before 2027-06-17\.\n/,
  );
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

  const dead = Array.from({ length: 27 }, (_, index) => {
    return session(1_000, 900, { id: String(index), ended: "gone", endedBy: NOW - 899 * HOUR });
  });
  const gone = gateText(await report([], [running(1_000), ...dead]));
  assertEquals(gone.match(/^Declared gone: session /gm)?.length, 25);
  assertMatch(gone, /\nDeclared gone: 2 more sessions\n/);
});

Deno.test("the report says how a cache in front can be found, if nothing was probed", async () => {
  const covered = "A cache in front may hide others: ";
  assert(
    usageText(await report([], ALWAYS, { canProbe: true })).endsWith(
      `${covered}the gate (--gate DAYS) checks for one.`,
    ),
  );
  assert(
    usageText(await report([], ALWAYS, { canProbe: false })).endsWith(
      `${covered}set PUBLIC_URL, and the gate checks for one.`,
    ),
  );
});
