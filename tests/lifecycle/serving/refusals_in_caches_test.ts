/**
 * Two clients behind a shared cache, one of which is refused: a field of the request decides which.
 */

import { assertEquals } from "@std/assert";
import {
  definePolicy,
  type LifecycleOptions,
  type RequestHead,
  retire,
  withLifecycle,
} from "../../../lib/lifecycle/mod.ts";
import { type CacheName, CACHES, needsOf, startCache } from "../../support/caches.ts";
import { answerBy, listening } from "../../support/node_server.ts";
import { needing } from "../../support/permissions.ts";

const [DAY, NOW] = [86_400_000, Math.floor(Date.now() / 1000) * 1000];
const SETTINGS = {
  deprecatedAt: new Date(NOW - 300 * DAY),
  brownouts: [{ start: new Date(NOW - 60 * DAY), end: new Date(NOW - 40 * DAY), status: 410 }],
  sunsetAt: new Date(NOW - DAY),
} as const;
const POLICIES = {
  gone: definePolicy({ ...SETTINGS, afterSunset: "gone" }),
  redirect: definePolicy({ ...SETTINGS, afterSunset: "redirect" }),
};
const AFTER = Object.keys(POLICIES) as (keyof typeof POLICIES)[];
const PHASES = ["before", "brownout", "after"] as const;
const INSTANTS = { before: NOW - 100 * DAY, brownout: NOW - 50 * DAY, after: NOW };

/** How an application on Node, and one on Fetch, decide by a request field whom to refuse. */
const DECIDERS = ["node-mount", "node-applies", "fetch-mount", "fetch-applies"] as const;
const CLIENTS = ["old", "new"];
const METHODS = ["GET", "HEAD"];
const isOld = (client: unknown) => client === "old";

/** What the application answers to each client, for caches to keep. */
const answerTo = (client: string): Record<string, string> => ({
  "X-Answers": client,
  "Cache-Control": "max-age=600",
  "Vary": "X-Client",
});

/** What an application does with a request. */
interface Subject {
  readonly decider: typeof DECIDERS[number];
  readonly after: keyof typeof POLICIES;
  readonly phase: typeof PHASES[number];
  readonly maxAge?: number;
  /** What it has set on the response before it calls the library. */
  readonly said?: Record<string, string>;
}

/** Starts an application that does with a request what is registered for its path. */
async function startApplication() {
  const subjects: Subject[] = [];
  const application = await listening((request, response) => {
    const { url = "", headers } = request;
    const { decider, after, phase, maxAge, said = {} } = subjects[Number(url.slice(1))] as Subject;
    const client = String(headers["x-client"]);
    const options: LifecycleOptions<RequestHead> = {
      ...maxAge === undefined ? {} : { maxAge },
      ...decider.endsWith("applies") &&
        { applies: ({ headers }) => isOld(headers.get("x-client")) },
      successor: () => "/v2",
      clock: () => INSTANTS[phase],
    };
    const isMounted = decider.endsWith("applies") || isOld(client);
    for (const [name, value] of Object.entries(said)) response.setHeader(name, value);
    if (decider.startsWith("node")) {
      const answer = () => response.writeHead(200, answerTo(client)).end(client);
      return isMounted
        ? retire(POLICIES[after], options)(request, response, answer)
        : void answer();
    }
    const answer = () => new Response(client, { headers: answerTo(client) });
    const handler = isMounted ? withLifecycle(answer, POLICIES[after], options) : answer;
    answerBy(handler, request, response);
  });
  /** Returns a path that no cache knows. */
  const register = (subject: Subject) => `/${subjects.push(subject) - 1}`;
  return { ...application, register };
}

/** Returns what a client gets: whose answer, or the status of a refusal. */
async function ask(port: number, path: string, method: string, client: string) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { "X-Client": client },
    redirect: "manual",
  });
  const content = await response.text();
  const answers = response.headers.get("x-answers");
  if (method === "GET" && answers !== null) assertEquals(content, answers);
  return answers ?? String(response.status);
}

/** Asks for a new path in an order of clients and methods, twice each; returns what each one got. */
async function askInOrder(
  port: number,
  register: (subject: Subject) => string,
  subject: Subject,
) {
  const got = new Map(CLIENTS.map((client) => [client, new Set<string>()]));
  for (const clients of [CLIENTS, CLIENTS.toReversed()]) {
    for (const methods of [METHODS, METHODS.toReversed()]) {
      const path = register(subject);
      for (const method of methods) {
        for (const client of [...clients, ...clients]) {
          got.get(client)?.add(await ask(port, path, method, client));
        }
      }
    }
  }
  return Object.fromEntries([...got].map(([client, answers]) => [client, [...answers]]));
}

/** What an application says against caches before the library refuses, and which caches heed it. */
const SAID: [said: Record<string, string>, heeding: CacheName[]][] = [
  [{}, []],
  [{ "Vary": "X-Client" }, CACHES],
  [{ "Cache-Control": "private" }, CACHES],
  [{ "Cache-Control": "max-age=60, Private" }, CACHES],
  [{ "Cache-Control": "no-store" }, CACHES],
  [{ "Cache-Control": 'no-cache="set-cookie"' }, CACHES],
  [{ "Cache-Control": "max-age=0" }, CACHES],
  [{ "Cache-Control": "s-maxage=0, max-age=60" }, CACHES],
  [{ "Expires": "0" }, CACHES],
  [{ "X-Accel-Expires": "0" }, CACHES],
  [{ "Surrogate-Control": "no-store" }, CACHES],
  [{ "Cache-Control": "max-age=60" }, []],
];

for (const cache of CACHES) {
  needing(...needsOf(cache))(
    `${cache} gives nobody a refusal, or an answer, that was meant for another client`,
    async () => {
      await using application = await startApplication();
      await using daemon = await startCache(cache, application.port);
      for (const decider of DECIDERS) {
        for (const after of AFTER) {
          for (const phase of PHASES) {
            const subject = { decider, after, phase };
            const got = await askInOrder(daemon.port, application.register, subject);
            const removed = after === "gone" ? "410" : "308";
            const old = { before: "old", brownout: "410", after: removed }[phase];
            const expected = { old: [old], new: ["new"] };
            assertEquals(got, expected, JSON.stringify(subject));
          }
        }
      }
    },
  );

  needing(...needsOf(cache))(
    `${cache} keeps a refusal for maxAge, unless the application has said something against it`,
    async () => {
      await using application = await startApplication();
      await using daemon = await startCache(cache, application.port);
      const heeded: Record<string, string>[] = [];
      for (const [said] of SAID) {
        const subject: Subject = {
          ...{ decider: "node-mount", after: "gone", phase: "after" },
          ...{ maxAge: 300, said },
        };
        const got = await askInOrder(daemon.port, application.register, subject);
        const isRight = got["old"]?.join() === "410" && got["new"]?.join() === "new";
        if (isRight) heeded.push(said);
      }
      const expected = SAID.flatMap(([said, heeding]) => heeding.includes(cache) ? [said] : []);
      assertEquals(heeded, expected);
    },
  );
}
