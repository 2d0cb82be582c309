/**
 * A year that never was, for the demo and for README's pictures: two apps call the old paths less and
 * less, through three brownouts. The server's handler answers every call, and its recorder records
 * it, by a clock of the year's. So nothing is made up but who calls when.
 */

import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { FaultLog, lineLog } from "../../lib/log/log.ts";
import { publishSamples } from "../../lib/publishing/samples.ts";
import type { HandlerOptions } from "../../lib/server/handler.ts";
import { deprecatedPaths, pathOf } from "../../lib/server/route.ts";
import type { OwnerPageOptions } from "../../lib/usage/output/owner_page.ts";
import { DAY_MS } from "../../lib/http/timestamp.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { readAllSessions } from "../../lib/usage/verdict/evidence.ts";
import { reportUsage, type UsageReport } from "../../lib/usage/verdict/report.ts";
import { createHandler, ROUTES } from "../../main.ts";
import { ledgerAt, openLedgerDatabase } from "../support/ledger_at.ts";
import { openMemory } from "../support/memory_storage.ts";

/** When the server starts, and when anybody asks. */
const [START, END] = ["2026-12-01T00:00Z", "2027-11-30T12:00Z"].map(Date.parse) as [number, number];

/** The server sends a heartbeat so often. */
const QUARTER_MS = DAY_MS / 4;

const CONTACT = "mailto:ops@example.com";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2028-03-01",
  brownouts: [
    "2027-06-07T09:00Z/PT15M",
    "2027-09-06T09:00Z/PT2H",
    "2027-11-15T09:00Z/PT8H",
    "2028-01-17T09:00Z/P1D",
  ],
  documentation: "/deprecation",
});

/** How a client calls. */
interface Caller {
  readonly userAgent: string;
  readonly kind: "audio" | "video";
  /** The calls a day on some days. They change steadily from one to the next. */
  readonly calls: readonly (readonly [day: string, calls: number])[];
}

const CALLERS: readonly Caller[] = [
  {
    userAgent: "MyPod/2.9",
    kind: "audio",
    calls: [
      ["2026-12-01", 60],
      ["2027-06-07", 50],
      ["2027-09-06", 40],
      ["2027-11-14", 32],
      ["2027-11-18", 14],
      ["2027-12-31", 0],
    ],
  },
  {
    userAgent: "MyPod/2.8.1",
    kind: "audio",
    calls: [["2026-12-01", 20], ["2027-06-07", 12], ["2027-12-31", 4]],
  },
  {
    userAgent: "Hearth/1.4",
    kind: "audio",
    calls: [["2026-12-01", 16], ["2027-11-14", 15], ["2027-11-16", 6], ["2027-12-31", 0]],
  },
  {
    userAgent: "MyPod/2.9",
    kind: "video",
    calls: [["2026-12-01", 24], ["2027-06-07", 18], ["2027-09-06", 9], ["2027-09-20", 0]],
  },
];

/** The calls of each day of a week, from Sunday on, relative to those on the busiest. */
const WEEK = [.8, .9, .95, 1, .95, .9, .7];

/** Returns how often a client calls on a day. */
function callsOn(day: number, { calls }: Caller): number {
  const points = calls.map(([on, count]) => [Date.parse(on), count] as const);
  const next = points.findIndex(([on]) => on > day);
  const [[from, before] = [day, 0], [to, after] = [day, 0]] = [points[next - 1], points[next]];
  const usual = next < 0 ? 0 : before + (after - before) * (day - from) / (to - from);
  return Math.round(usual * (WEEK[new Date(day).getUTCDay()] ?? 1));
}

/** Returns the calls of a quarter of a day, in their order, each with its instant. */
function callsFrom(start: number): { readonly at: number; readonly caller: Caller }[] {
  const day = start - start % DAY_MS;
  return CALLERS.flatMap((caller) => {
    const count = callsOn(day, caller);
    return Array.from({ length: count }, (_, index) => {
      return { at: day + Math.floor((index + .5) / count * DAY_MS), caller };
    });
  }).filter(({ at }) => at >= start && at < start + QUARTER_MS).sort((a, b) => a.at - b.at);
}

/** What there is at the end of the year. */
interface Year extends AsyncDisposable {
  /** The deprecated path of an item. */
  readonly sample: string;
  /** Answers a request as the server would at that instant. */
  readonly answer: (request: Request) => Promise<Response>;
  /** Reports as the gate of the command `usage` does, on one client or all. */
  readonly report: (client?: string) => Promise<UsageReport>;
  readonly ownerFacts: OwnerPageOptions;
}

/** Lives through the year, all in memory. */
export async function liveThroughYear(): Promise<Year> {
  let now = START;
  const clock = () => now;
  const log = lineLog(clock);
  const subject = await openMemory();
  const database = await openLedgerDatabase();
  const samples = await publishSamples(subject.storage, ROUTES);
  const pathOfSample = (kind: Caller["kind"]) => {
    const path = samples.find((path) => path.startsWith(`/${kind}/`));
    if (path === undefined) throw new Error(`There is no ${kind} among ${samples}`);
    return path;
  };
  const ledger = ledgerAt(database, clock);
  const policies = Object.fromEntries(deprecatedPaths(ROUTES).map((path) => [path, POLICY]));
  const recorder = new Recorder({
    open: () => Promise.resolve({ ledger, checkWriting: async () => {}, close: async () => {} }),
    policies,
    process: { machine: "web-1", pid: 1, started: START },
    onDemand: false,
    retainDays: 400,
    clock,
    lifetime: () => now - START,
    log,
  });
  await recorder.start();
  const options: HandlerOptions = {
    routes: ROUTES,
    storage: subject.storage,
    config: { cacheMaxAge: 300, policy: POLICY, policies, contact: CONTACT },
    policies: () => recorder.policies,
    clock,
    faults: new FaultLog(log),
  };
  const handle = createHandler({ ...options, recorder });
  for (let start = START; start < END; start += QUARTER_MS) {
    for (const { at, caller: { userAgent, kind } } of callsFrom(start)) {
      now = at;
      const url = `http://localhost${pathOfSample(kind)}`;
      await handle(new Request(url, { method: "HEAD", headers: { "User-Agent": userAgent } }), at);
    }
    now = start + QUARTER_MS - 1;
    await recorder.flush();
  }
  now = END;
  await recorder.flush();
  const sources = [{ ledger, name: "the record" }];
  const records = await readAllSessions(sources);

  const handleUncounted = createHandler(options);
  return {
    sample: pathOfSample("audio"),
    answer: async (request) => (await handleUncounted(request, END)).response,
    report: (client) => reportUsage(sources, records, { client, days: 30, isByRhythm: true }),
    ownerFacts: {
      sessions: records.flatMap(({ sessions }) => sessions),
      successorOf: (path) => ROUTES.find((route) => pathOf(route) === path)?.successor,
      contact: CONTACT,
    },
    async [Symbol.asyncDispose]() {
      await recorder.close();
      await database[Symbol.asyncDispose]();
      await subject[Symbol.asyncDispose]();
    },
  };
}
