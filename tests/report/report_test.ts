import { assertEquals } from "@std/assert";
import { gateText } from "../../lib/report/text.ts";
import { phasesText } from "../../lib/report/words.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import {
  ALWAYS,
  DAY,
  heartbeat,
  HOUR,
  NOW,
  POLICIES,
  POLICY,
  report,
  row,
  ROWS,
} from "../support/usage_report.ts";

Deno.test("reportUsage() sums a period by day, route and client", async () => {
  const { from, today, routes, clients, ...rest } = await report(ROWS, ALWAYS);
  assertEquals([from, today], ["2027-06-08", "2027-06-15"]);
  assertEquals(
    routes.map(({ route, calls, otherRequests }) => [route, calls, otherRequests]),
    [["/audio/:token", 36, 12], ["/video/:token", 60, 0]],
  );
  assertEquals(routes[0]?.days.map(({ calls }) => calls), [30, 5, 0, 0, 0, 0, 0, 1]);
  assertEquals(routes[0]?.days[1]?.byPhase, { brownout: 5 });
  assertEquals(clients, [
    {
      client: "curl",
      calls: 60,
      first: NOW - 30 * DAY, // before the period
      last: NOW - 5 * DAY + HOUR,
      routes: ["/video/:token"],
      phases: { deprecated: 60 },
      brownouts: [],
    },
    {
      client: "Overcast",
      calls: 36,
      first: NOW - 8 * DAY,
      last: NOW + HOUR,
      routes: ["/audio/:token"],
      phases: { deprecated: 31, brownout: 5 },
      brownouts: [],
    },
  ]);
  assertEquals(rest.recordedSince, NOW - 1000 * HOUR);
});

Deno.test("the gate leaves out ignored clients and allows some calls, but never what it cannot know", async () => {
  const rows = [row(0, "app monitor", 50), row(0, "app curl", 3), row(1, "site a.test", 2)];
  const gap = [heartbeat(1000, 30, { end: "stopped" }), heartbeat(29, 0)];
  const options = [
    [{}, "called"],
    [{ ignore: ["app monitor"] }, "called"],
    [{ ignore: ["app monitor"], atMost: 4 }, "called"],
    [{ ignore: ["app monitor"], atMost: 5 }, "clear"],
    [{ ignore: ["monitor"], atMost: 5 }, "called"],
    [{ atMost: 55 }, "clear"],
    [{ ignore: ["app monitor", "app curl", "site a.test", "nobody"] }, "clear"],
  ] as const;
  for (const [option, expected] of options) {
    const what = JSON.stringify(option);
    const whole = await report(rows, ALWAYS, { days: 2, ...option });
    assertEquals(whole.verdict.verdict, expected, what);
    const partial = await report(rows, gap, { days: 2, ...option });
    assertEquals(partial.verdict.verdict, expected === "clear" ? "unknown" : expected, what);
  }
  const text = gateText(
    await report(rows, ALWAYS, { days: 2, ignore: ["app monitor", "x"], atMost: 5 }),
  );
  assertEquals(text.split("\n"), [
    "Clear: 5 calls, at most 5 allowed, since 2027-06-13 (2 whole days and today, UTC), and servers" +
    " were counting throughout.",
    "  app curl, 3 calls, last at 2027-06-15T13:00:00Z (deprecated)",
    "  site a.test, 2 calls, last at 2027-06-14T13:00:00Z (deprecated)",
    "Ignored: app monitor, 50 calls",
    "Ignored: x, 0 calls",
  ]);
});

Deno.test("the report says in which brownouts a client called", async () => {
  const brownout = { phase: "brownout", status: "5xx" } as const;
  const { clients } = await report([row(5, "app a", 2, brownout), row(3, "app a", 1)], ALWAYS);
  assertEquals(clients.map(({ phases, brownouts }) => ({ phases, brownouts })), [
    { phases: { brownout: 2, deprecated: 1 }, brownouts: POLICY.brownouts },
  ]);
  assertEquals(clients.map(phasesText), ["deprecated, brownouts of 2027-06-10T09:00:00Z"]);
});

Deno.test("a report and its gate agree on period boundaries", async () => {
  // Two whole days and today: the period starts at midnight, 60 hours ago.
  const rows: [what: string, hoursAgo: number, verdict: string][] = [
    ["the first moment", 60, "called"],
    ["the moment before", 60 + 1 / HOUR, "clear"],
    ["exactly two days ago", 48, "called"],
    ["just now", 0, "called"],
    ["tomorrow, on a server whose clock is ahead", -13, "called"],
  ];
  for (const [what, hoursAgo, expected] of rows) {
    const at = NOW - hoursAgo * HOUR;
    const called = row(hoursAgo / 24, "curl", 1, { first: at, last: at });
    const { verdict, clients, routes } = await report([called], ALWAYS, { days: 2 });
    assertEquals(verdict.verdict, expected, what);
    const shown = expected === "called" ? 1 : 0;
    const inTable = routes.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
    assertEquals([clients.length, inTable], [shown, shown], what);
  }
});

Deno.test("the report takes the dates from the record, and lists others beside them", async () => {
  const other = definePolicy({ deprecatedAt: "2027-01-01" });
  const servers = [
    heartbeat(1000, 0, { server: "b", policies: { ...POLICIES, "/video/:token": other } }),
    heartbeat(900, 0),
  ];
  const rows: [environment: Partial<Policy>, routes: string[]][] = [
    [{}, []],
    [{ sunsetAt: POLICY.sunsetAt, brownouts: POLICY.brownouts }, []],
    [{ deprecatedAt: POLICY.deprecatedAt + DAY }, ["/audio", "/video"]],
  ];
  const announced = "deprecation 2027-01-01T00:00:00Z, sunset 2027-06-17T00:00:00Z, " +
    "brownout 2027-06-10T09:00:00Z/2027-06-10T17:00:00Z";
  for (const [environment, routes] of rows) {
    const byRoute = { "/audio/:token": environment, "/video/:token": environment };
    const text = gateText(await report([], servers, { environment: byRoute }));
    assertEquals(text.split("\n").slice(1), [
      ...routes.map((route) =>
        `${route}/:token announces ${announced}; but the environment of this command: ` +
        announced.replace("01-01", "01-02")
      ),
      `/video/:token announces ${announced}; but server b, last heartbeat at 2027-06-15T12:00:00Z: ` +
      "deprecation 2027-01-01T00:00:00Z, no sunset",
    ]);
  }
  const { policies } = await report([], servers);
  assertEquals(policies["/video/:token"]?.sunsetAt, POLICY.sunsetAt);
});
