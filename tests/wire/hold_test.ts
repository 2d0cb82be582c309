/** A hold reaches every server and application that shares a record. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { delay } from "@std/async/delay";
import { openLocal } from "../support/local_storage.ts";
import { mediaHere } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { ApplicationProcess } from "../support/recorded_processes.ts";
import { requestRaw } from "../support/raw_http.ts";
import { Relay } from "../support/relay.ts";
import { ServerProcess } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const POLICY = {
  deprecatedAt: "1999-01-01",
  sunsetAt: "2999-01-01",
  brownouts: ["2000-01-01/2998-01-01"],
  brownoutStatus: 503,
} as const;
const SETTINGS = {
  DEPRECATED_AT: POLICY.deprecatedAt,
  SUNSET_AT: POLICY.sunsetAt,
  BROWNOUTS: POLICY.brownouts.join(),
  BROWNOUT_STATUS: `${POLICY.brownoutStatus}`,
};

const REASON = "billing is down";

/** What a server says at its start of its routes. */
type AnnouncedRoutes = Readonly<Record<string, { readonly phase: string }>>;

/** How long a process that has followed may take to answer accordingly, in milliseconds. */
const BOUND = 1_000;

/** When a status was seen. */
interface Seen {
  readonly status: number;
  readonly at: number;
}

/**
 * Requests one URL by HEAD and GET, repeatedly, so that responses are prepared, and by HEADs that are
 * new each time.
 */
class Caller implements AsyncDisposable {
  readonly seen: Record<"HEAD" | "GET" | "NEW", Seen[]> = { HEAD: [], GET: [], NEW: [] };
  #isStopped = false;
  readonly #loop: Promise<void>;

  constructor(readonly url: string) {
    this.#loop = this.#call();
  }

  async #call(): Promise<void> {
    while (!this.#isStopped) {
      for (const kind of ["HEAD", "GET", "NEW"] as const) {
        const at = Date.now();
        const [url, method] = kind === "NEW" ? [`${this.url}?${at}`, "HEAD"] : [this.url, kind];
        const response = await fetch(url, { method });
        await response.bytes();
        this.seen[kind].push({ status: response.status, at });
      }
      await delay(20);
    }
  }

  /** Waits until HEAD and GET have been answered with a status since an instant. */
  async meets(status: number, since = Date.now()): Promise<void> {
    const meet = ({ status: other, at }: Seen) => other === status && at >= since;
    await until(
      `${status} from ${this.url}`,
      () => Object.values(this.seen).every((seen) => seen.some(meet)),
    );
  }

  /** Returns when a status was last seen: by prepared responses, and by new ones. */
  lastSeen(status: number): [prepared: number, others: number] {
    const { HEAD, GET, NEW } = this.seen;
    const [head = 0, get = 0, fresh = 0] = [HEAD, GET, NEW].map((seen) =>
      seen.findLast((each) => each.status === status)?.at
    );
    return [Math.max(head, get), fresh];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
  }
}

needing("processes", ...POSTGRES)(
  "a hold and its release reach every server and application that media hold counts",
  async () => {
    await using stack = new AsyncDisposableStack();
    const name = await postgres().createDatabase();
    const environment = { ...SETTINGS, DATABASE_URL: postgres().urlOf(name) };
    const subject = stack.use(await openLocal(openEngine(environment.DATABASE_URL)));
    const { folder } = subject;
    const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
    const path = `/audio/${token}`;
    const servers: ServerProcess[] = [];
    for (let started = 0; started < 3; started++) {
      servers.push(stack.use(await ServerProcess.start(environment, folder)));
    }
    // A period of lookups begins with the first request, and ends all prepared responses, too.
    await delay(2_500);
    const relay = stack.use(new Relay(postgres().port));
    const url = postgres().urlOf(name, relay.port);
    /** Cuts the application off the record, until the returned function is called. */
    const cutOff = () => {
      relay.lead(1); // nothing listens there
      return () => relay.lead(postgres().port);
    };
    const application = stack.use(await ApplicationProcess.start(url, { settings: POLICY }));
    const callers = [
      ...servers.map(({ origin }) => origin + path),
      `http://127.0.0.1:${application.port}/v1/a`,
    ].map((url) => stack.use(new Caller(url)));
    const meet = async (status: number, some = callers) => {
      const since = Date.now();
      await Promise.all(some.map((caller) => caller.meets(status, since)));
    };
    const hold = async (...args: string[]) => {
      const { code, stdout, stderr } = await mediaHere(folder, ["hold", ...args], environment);
      assertEquals([code, stderr], [0, ""]);
      return { stdout, at: Date.now() };
    };
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const put = () => hold("--until", tomorrow, "--because", REASON);
    /** Checks that nobody was answered with a status after the bound. */
    const checkLast = async (status: number, next: number, at: number, some = callers) => {
      await meet(next, some);
      await delay(Math.max(0, at + 2 * BOUND - Date.now()));
      for (const caller of some) {
        const [prepared, others] = caller.lastSeen(status);
        assert(Math.max(prepared, others) - at <= BOUND, `${caller.url}: ${prepared - at}`);
        assert(prepared - others < BOUND, "prepared ones change with all others");
      }
    };

    await meet(503);
    const { stdout, at } = await put();
    assertMatch(stdout, /^Held until .* \(billing is down\): all routes\n/);
    const all = callers.length;
    assertStringIncludes(stdout, `\n${all} processes have followed\n`);
    await checkLast(503, 200, at);

    const [server] = servers;
    assert(server !== undefined);
    await using late = await ServerProcess.start(environment, folder);
    for (const method of ["HEAD", "GET"]) {
      const { status } = await requestRaw(late.port, method, path);
      assertEquals(status, 200, `${method} to a server that has just started`);
    }
    const started = (await late.stop()).log;
    const facts = started.find(({ event }) => event === "start")?.["routes"] as AnnouncedRoutes;
    assertEquals(facts["/audio/:token"]?.phase, "deprecated");
    assertEquals(started.filter(({ event }) => event === "phase"), [], "it was always so");
    assert(started.some(({ event, because }) => event === "hold" && because === REASON));

    const notice = await fetch(`${server.origin}/deprecation`, {
      headers: { Accept: "application/json" },
    });
    const { phase, holds } = await notice.json();
    assertEquals([phase, holds[0].because], ["deprecated", REASON]);
    const shown = await mediaHere(folder, ["show", token], environment);
    assertMatch(shown.stdout, /\nHEAD \/audio\/\S+\n200\n/);
    const report = await mediaHere(folder, ["usage"], environment);
    assertMatch(report.stdout, /: held until \S+ \(billing is down\): the brownout from /);

    const [others, cut] = [callers.slice(0, -1), callers.at(-1)];
    assert(cut !== undefined);
    const checkUnchanged = async (status: number) => {
      const since = Date.now();
      await cut.meets(status, since);
      const seen = Object.values(cut.seen).flat().filter(({ at }) => at >= since);
      assertEquals([...new Set(seen.map(({ status }) => status))], [status]);
    };
    await delay(Math.max(0, at + 6_000 - Date.now())); // for the log, which looks every five seconds
    const mend = cutOff();
    const released = await hold("--release");
    const left = /\n(\d) processes have followed\nNot yet: .*, which last wrote at \S+Z\n$/;
    assertMatch(released.stdout, left);
    assertEquals(Number(left.exec(released.stdout)?.[1]), all - 1);
    await checkLast(200, 503, released.at, others);
    await checkUnchanged(200); // it keeps what it knew
    mend();
    await meet(503, [cut]);
    const mendAgain = cutOff();
    await put();
    await meet(200, others);
    await checkUnchanged(503); // and has not learned of this one
    mendAgain();
    await meet(200, [cut]);

    for (const caller of callers) await caller[Symbol.asyncDispose]();
    const { log } = await server.stop();
    const said = log.filter(({ event, route }) =>
      (event === "hold" || event === "phase") && route === "/audio/:token"
    ).map(({ event, hold, phase, because }) => [event, hold ?? phase, because]);
    assertEquals(said.slice(0, 4), [
      ["hold", "begins", REASON],
      ["phase", "deprecated", undefined],
      ["hold", "ends", REASON],
      ["phase", "brownout", undefined],
    ]);
  },
);
