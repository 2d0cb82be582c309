import { assertEquals } from "@std/assert";
import {
  type Intent,
  LEASE_MS,
  type Session,
  type UsageRow,
} from "../../../lib/usage/record/records.ts";
import type { Doubt } from "../../../lib/usage/verdict/doubts.ts";
import {
  ALWAYS,
  HOUR,
  intent,
  MINUTE,
  NOW,
  POLICIES,
  POLICY,
  report,
  row,
  running,
  session,
} from "../../support/usage_report.ts";

const hoursAgo = (instant: number) => Math.round((NOW - instant) / HOUR * 100) / 100;

/** Describes doubts by their hours before now. */
const described = (doubts: readonly Doubt[]) =>
  doubts.map((doubt) => {
    const whats = ["session", "route", "routes"].flatMap((name) =>
      name in doubt ? [` ${Object(doubt)[name]}`] : []
    );
    const { start } = Object(doubt);
    const from = start === undefined ? "" : ` ${hoursAgo(start)} to`;
    return `${doubt.reason}${whats.join("")}${from} ${hoursAgo(doubt.until)}`;
  });

const TRUSTING = { trustStops: true } as const;
const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"] as const;
const BOTH = `${AUDIO},${VIDEO}`;
const ONLY_AUDIO = { policies: { [AUDIO]: POLICY } };
/** Of two routes, only one is mounted; or none is. */
const HALF = { policies: { [AUDIO]: POLICY }, unmounted: { [VIDEO]: POLICY } };
const NONE = { policies: {}, unmounted: POLICIES };
const [stopped, lapsed] = [{ id: "b", ended: "stopped" }, { ended: "lapsed" }] as const;
const b = { id: "b" } as const;
/** The timelines before and after a failover. */
const [OLD, NEW] = [{ timeline: "7-1" }, { timeline: "7-2" }] as const;
const serve = { mayServeUnrecorded: true } as const;
const hoursBefore = (hours: number) => NOW - Math.round(hours * HOUR);
const settledAt = (hours: number) => ({ settled: hoursBefore(hours) });

Deno.test("the gate is never clear when the record is incomplete, and says why", async () => {
  const other = row(1, "x", 5, { impact: "none" });
  const rows: [
    what: string,
    sessions: Session[],
    verdict: string[] | "clear" | "called",
    options?: {
      usage?: UsageRow[];
      intents?: Intent[];
      started?: number;
      trustStops?: true;
      routes?: string[];
      lag?: number;
      timeline?: string;
      isGate?: boolean;
    },
  ][] = [
    ["no calls, always counting", ALWAYS, "clear"],
    ["no call that removal breaks", ALWAYS, "clear", { usage: [other] }],
    ["called, and hardly ever counting", [running(1)], "called", { usage: [row(0, "curl", 1)] }],
    ["never counting", [], ["started 0"]],
    ["counting since within the period", [running(47)], ["started 47"]],
    ["begun within the period, though stops are trusted", [running(47)], ["started 47"], TRUSTING],
    ["the record starts again tomorrow", ALWAYS, ["started -24"], { started: hoursBefore(-24) }],

    ["fell silent without an intent", [running(100), session(100, 50, b)], "clear"],
    ["fell silent a second ago", [running(100), session(100, 1 / 3600, b)], "clear"],
    ["registered only", [running(100), session(9, 9, b)], "clear"],
    ["a heartbeat at the very moment", [session(100, 0)], "clear"],
    ["fell silent, and another began within a minute", [
      session(100, 30),
      running(30 - 1 / 61, b),
    ], "clear"],
    ["fell silent, and another began a minute later", [
      session(100, 30),
      running(30 - 1 / 60, b),
    ], ["stop 30 to 29.98"]],

    ["fell silent with an intent", [running(100), session(100, 50, b)], [
      `intent b ${AUDIO} 50.2 to 26.2`,
    ], { intents: [intent("b", 50.2)] }],
    ["the same, and its last heartbeat settled calls", [running(100), session(100, 50, b)], [
      `intent b ${AUDIO} 50 to 26.2`,
    ], { intents: [intent("b", 50.2, settledAt(50))] }],
    ["the same, if stops are trusted", [running(100), session(100, 50, b)], "clear", {
      ...TRUSTING,
      intents: [intent("b", 50.2)],
    }],
    ["an intent in use until the period began", [running(100), session(100, 84, b)], "clear", {
      intents: [intent("b", 84, { until: hoursBefore(60) })],
    }],
    ["and one until just after", [running(100), session(100, 84, b)], [
      `intent b ${AUDIO} 84 to 60`,
    ], { intents: [intent("b", 84, { until: hoursBefore(60) + 1 })] }],
    ["an intent that may still be in use", [running(100), session(100, 1, b)], [
      `intent b ${AUDIO} 2 to -22`,
    ], { intents: [intent("b", 2)] }],
    ["an intent on a route that is not judged", [running(100), session(100, 50, b)], "clear", {
      intents: [intent("b", 50.2)],
      routes: [VIDEO],
    }],
    [
      "an intent is in use for longer by as much as nobody counts",
      [
        session(100, 50, b),
        session(49, 45, { id: "c" }),
        running(40),
      ],
      ["stop 50 to 49", "stop 45 to 40", `intent b ${AUDIO} 50.2 to 20.2`],
      {
        intents: [intent("b", 50.2)],
      },
    ],
    ["stopped with a call in flight", [running(100), session(100, 50, stopped)], [
      `intent b ${AUDIO} 50.2 to 26.2`,
    ], { intents: [intent("b", 50.2)] }],
    ["an intent whose session is not there", [running(100)], [`intent ${AUDIO} 50.2 to 26.2`], {
      intents: [intent("x", 50.2)],
    }],

    ["running, and no heartbeat since", ALWAYS, [`in flight a ${AUDIO} 0`], {
      intents: [intent("a", 1)],
    }],
    ["running, and its heartbeat settled calls until the very instant", ALWAYS, [
      `in flight a ${AUDIO} 0`,
    ], { intents: [intent("a", 1, settledAt(0))] }],
    ["running, and its heartbeat settled later calls", ALWAYS, "clear", {
      intents: [intent("a", 1, { settled: NOW + 1 })],
    }],
    ["in flight, though stops are trusted", ALWAYS, [`in flight a ${AUDIO} 0`], {
      ...TRUSTING,
      intents: [intent("a", 1)],
    }],
    ["in flight on a route that is not judged", ALWAYS, "clear", {
      intents: [intent("a", 1)],
      routes: [VIDEO],
    }],
    ["a report waits for nobody", ALWAYS, "clear", {
      intents: [intent("a", 1, { settled: NOW - 9_999 })],
      isGate: false,
    }],
    ["a report of a call that is in flight for two flushes", ALWAYS, [`in flight a ${AUDIO} 0`], {
      intents: [intent("a", 1, { settled: NOW - 10_000 })],
      isGate: false,
    }],

    ["no server now", [session(100, 1, stopped)], [`no server ${BOTH} 1 to 0`]],
    ["no server for a minute", [session(100, 1 / 60, stopped)], [`no server ${BOTH} 0.02 to 0`]],
    ["none for less", [session(100, 1 / 61, stopped)], "clear"],
    ["no server now, though stops are trusted", [session(100, 1, stopped)], [
      `no server ${BOTH} 1 to 0`,
    ], TRUSTING],
    ["the only server is silent", [session(100, 1)], [`no server ${BOTH} 1 to 0`]],
    ["a database that nobody has used for weeks", [session(2000, 1400, stopped)], [
      `no server ${BOTH} 1400 to 0`,
    ], TRUSTING],
    [
      "the next server has only registered, without one of the routes",
      [
        session(100, 1, stopped),
        session(0, 0, { id: "c", ...ONLY_AUDIO }),
      ],
      [`no server ${VIDEO} 1 to 0`, "stop 1 to 0"],
      { routes: [AUDIO, VIDEO] },
    ],

    ["a stop", [session(100, 30, stopped), running(29)], ["stop 30 to 29"]],
    ["two", [session(100, 50, stopped), session(47, 30, stopped), running(29)], [
      "stop 50 to 47",
      "stop 30 to 29",
    ]],
    ["the machine slept", [session(100, 30, lapsed), running(29)], ["stop 30 to 29"]],
    ["it slept, if stops are trusted", [session(100, 30, lapsed), running(29)], "clear", TRUSTING],
    ["it slept beside another", [session(100, 30, lapsed), running(100), running(29)], "clear"],
    ["a restart", [session(100, 30, stopped), running(30 - 1 / 70)], "clear"],
    ["a restart of a minute", [session(100, 30, stopped), running(30 - 1 / 60)], [
      "stop 30 to 29.98",
    ]],
    [
      "stopped before the period, if stops are trusted",
      [session(100, 70, stopped), running(50)],
      "clear",
      TRUSTING,
    ],
    ["a power cut", [session(100, 5), running(4, b)], ["stop 5 to 4"]],
    ["a power cut, if stops are trusted", [session(100, 5), running(4, b)], "clear", TRUSTING],
    [
      "a power cut while calls were answered, if stops are trusted",
      [
        session(100, 5),
        running(4, b),
      ],
      "clear",
      { ...TRUSTING, intents: [intent("a", 5)] },
    ],
    ["the record started again after a stop", [session(100, 30), running(29)], ["started 29"], {
      started: hoursBefore(29),
    }],
    ["a handover", [session(100, 20, stopped), running(30)], "clear"],
    ["a long session over a short one", [running(100), session(40, 39, stopped)], "clear"],
    ["stopped beside another", [running(100), session(100, 1, stopped)], "clear"],
    ["days were deleted", ALWAYS, ["started 36"], { started: Date.parse("2027-06-14") }],
    ["days before were deleted", ALWAYS, "clear", { started: Date.parse("2027-06-13") }],
    ["a stop right after what was deleted, with its intents", [running(50)], ["stop 60 to 26"], {
      started: Date.parse("2027-06-13"),
    }],

    [
      "failed over, for seconds",
      [session(100, 30, { ...lapsed, ...OLD }), running(30 - 1 / 600, { ...b, ...NEW })],
      ["restored 30 to 6"],
      NEW,
    ],
    [
      "failed over, if stops are trusted",
      [session(100, 30, { ...lapsed, ...OLD }), running(30 - 1 / 600, { ...b, ...NEW })],
      "clear",
      { ...NEW, ...TRUSTING },
    ],
    [
      "failed over a lease before the period",
      [session(200, 84, { ...lapsed, ...OLD }), running(84, { ...b, ...NEW })],
      "clear",
      NEW,
    ],
    ["failed over, and nobody has registered since", [session(100, 1 / 3600, OLD)], [
      "restored 0 to -24",
    ], NEW],
    [
      "restored into the system from which it came",
      [
        session(100, 40, OLD),
        session(40 - 1 / 600, 30, { ...b, ...NEW }),
        running(30 - 1 / 600, { ...OLD, id: "c" }),
      ],
      ["restored 40 to 16", "restored 30 to 6"],
      OLD,
    ],
    ["an engine that cannot tell", [running(100, { timeline: "" })], "clear", { timeline: "" }],

    ["may have served unrecorded calls", [running(100), session(100, 50, { ...b, ...serve })], [
      "unrecorded b 50",
    ]],
    [
      "the same, if stops are trusted",
      [running(100), session(100, 50, { ...b, ...serve })],
      "clear",
      {
        ...TRUSTING,
      },
    ],
    ["the same, before the period", [running(100), session(100, 61, { ...b, ...serve })], "clear"],
    [
      "it has closed its record",
      [running(100), session(100, 50, { ...stopped, ...serve })],
      "clear",
    ],
    ["it runs", [running(100, serve)], "clear"],
    ["its process has another session", [
      session(100, 50, { ...lapsed, ...serve }),
      running(50, { ...b, ...serve }),
    ], "clear"],
    [
      "it did not count the route",
      [
        running(100),
        session(100, 50, { ...b, ...serve, ...ONLY_AUDIO }),
      ],
      [`not counted b ${VIDEO} 50`],
      { routes: [VIDEO] },
    ],

    [
      "a route that was marked later",
      [session(100, 20, { ...stopped, ...ONLY_AUDIO }), running(20)],
      [`not counted b ${VIDEO} 20`],
    ],
    [
      "a route that was marked later, and is not judged",
      [session(100, 20, { ...stopped, ...ONLY_AUDIO }), running(20)],
      "clear",
      { routes: [AUDIO] },
    ],
    ["a route that was marked before", [
      session(100, 70, { ...stopped, ...ONLY_AUDIO }),
      running(70),
    ], "clear"],
    [
      "a route that was marked later, after deploys",
      [50, 40, 30, 20].map((until) => session(until + 50, until, { ...stopped, ...ONLY_AUDIO }))
        .concat(running(20)),
      [`not counted b ${VIDEO} 20`],
    ],
    ["a route that one server does not count", [
      running(100),
      session(9, 8, { ...stopped, ...ONLY_AUDIO }),
    ], [`not counted b ${VIDEO} 8`]],
    ["a route that a silent server did not count", [running(100), session(9, 8, ONLY_AUDIO)], [
      `not counted a ${VIDEO} 8`,
    ]],
    ["a route that a running server does not count", [
      running(100),
      running(9, { ...b, ...ONLY_AUDIO }),
    ], [`not counted b ${VIDEO} 0`]],
    [
      "a route that a server does not count that stopped before its first heartbeat",
      [running(100), session(9, 9, { ...stopped, ...ONLY_AUDIO })],
      "clear",
    ],
    [
      "no route is marked any more",
      [session(100, 9, stopped), running(9, { policies: {} })],
      [`not counted a ${AUDIO} 0`],
      { routes: [AUDIO] },
    ],

    ["a running server has not mounted a route", [running(100), running(9, { ...b, ...HALF })], [
      `not counted b ${VIDEO} 0`,
    ]],
    ["a server that ended had not mounted a route", [
      running(100),
      session(9, 8, { ...stopped, ...HALF }),
    ], [`not counted b ${VIDEO} 8`]],
    ["nobody has ever mounted a route", [running(100, HALF)], [`not counted a ${VIDEO} 0`]],
    ["a server ended before it had mounted all routes, within a minute", [
      running(100),
      session(9, 9 - 1 / 61, { ...stopped, ...HALF }),
    ], "clear"],
    ["it took a minute", [running(100), session(9, 9 - 1 / 60, { ...stopped, ...HALF })], [
      `not counted b ${VIDEO} 8.98`,
    ]],
    ["a server is about to mount the rest", [session(1 / 61, 0, { ...HALF, id: "c" })], [
      "started 0.02",
      `no server ${VIDEO} 0`,
    ]],
    ["a job mounts nothing", [
      running(100),
      session(9, 8, { ...stopped, ...NONE }),
      running(7, { id: "c", ...NONE }),
    ], "clear"],
    ["only a job runs", [session(100, 9, stopped), running(9, { id: "c", ...NONE })], [
      `no server ${BOTH} 9 to 0`,
    ]],
    ["only a job ran for an hour", [
      session(100, 30, stopped),
      session(30, 29, NONE),
      running(29, { id: "c" }),
    ], ["stop 30 to 29"]],

    ["the database's clock was set back by a minute", ALWAYS, ["ahead 0"], { lag: MINUTE }],
    ["it was, though stops are trusted", ALWAYS, ["ahead 0"], { lag: MINUTE, trustStops: true }],
    ["it was set back by less", ALWAYS, "clear", { lag: MINUTE - 1 }],
  ];
  for (const [what, sessions, expected, { usage = [], ...options } = {}] of rows) {
    const { verdict } = await report(usage, sessions, { days: 2, ...options });
    const seen = verdict.state === "unknown" ? described(verdict.doubts) : verdict.state;
    assertEquals(seen, expected, what);
  }
});

Deno.test("an unknown verdict has what --trust-stops would leave", async () => {
  const silent = [running(100), session(100, 50, b)];
  const rows: [what: string, sessions: Session[], intents: Intent[], left: string[]][] = [
    ["a stop", [session(100, 30, stopped), running(29)], [], []],
    ["an intent", silent, [intent("b", 50)], []],
    [
      "a failover",
      [session(100, 30, { ...lapsed, ...OLD }), running(30, { ...b, ...NEW })],
      [],
      [],
    ],
    ["unrecorded calls", [running(100), session(100, 50, { ...b, ...serve })], [], []],
    ["an intent, and one that is in flight", silent, [intent("b", 50), intent("a", 1)], [
      `in flight a ${AUDIO} 0`,
    ]],
    ["a stop, and no server now", [session(100, 50, stopped), session(40, 30, stopped)], [], [
      `no server ${BOTH} 30 to 0`,
    ]],
    ["begun within the period", [session(47, 40), running(30)], [], ["started 47"]],
  ];
  for (const [what, sessions, intents, left] of rows) {
    const timeline = sessions.at(-1)?.timeline ?? "";
    const { verdict } = await report([], sessions, { days: 2, intents, timeline });
    assertEquals(verdict.state, "unknown", what);
    assertEquals(described(verdict.state === "unknown" ? verdict.left : []), left, what);
    const trusting = await report([], sessions, { days: 2, intents, timeline, ...TRUSTING });
    assertEquals(trusting.verdict.state, left.length === 0 ? "clear" : "unknown", what);
  }
});

Deno.test("an intent makes its own route unknown, and no other", async () => {
  const intents = [intent("b", 50)];
  const sessions = [running(100), session(100, 50, b)];
  const { verdict, verdicts } = await report([], sessions, { days: 2, intents });
  assertEquals(verdicts.map(({ route, state }) => [route, state]), [
    [AUDIO, "unknown"],
    [VIDEO, "clear"],
  ]);
  assertEquals(verdict.state, "unknown");
  for (const [route, state] of [[AUDIO, "unknown"], [VIDEO, "clear"]] as const) {
    const alone = await report([], sessions, { days: 2, intents, routes: [route] });
    assertEquals(alone.verdict.state, state);
  }
});

Deno.test("the record is complete from where the intent of a silent session ends", async () => {
  const sessions = [running(100), session(100, 50, b)];
  const written = intent("b", 50);
  assertEquals(written.until, written.since + LEASE_MS);
  const { completeSince } = await report([], sessions, { days: 2, intents: [written] });
  assertEquals(completeSince, written.until);
});
