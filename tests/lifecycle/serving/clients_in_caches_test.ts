/** Two clients behind a shared cache, one of which has more time. */

import { assertEquals } from "@std/assert";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extendedPolicy } from "../../../lib/lifecycle/extension.ts";
import { definePolicy, type RequestHead } from "../../../lib/lifecycle/mod.ts";
import { middlewareOf } from "../../../lib/lifecycle/serving/retire.ts";
import { type CallRecord, retirementOf } from "../../../lib/lifecycle/serving/retirement.ts";
import { handlerOf } from "../../../lib/lifecycle/serving/with_lifecycle.ts";
import { type CacheName, CACHES, needsOf, startCache } from "../../support/caches.ts";
import { needing } from "../../support/permissions.ts";

const [DAY, NOW] = [86_400_000, Math.floor(Date.now() / 1000) * 1000];
const POLICY = definePolicy({
  deprecatedAt: new Date(NOW - 300 * DAY),
  brownouts: [{ start: new Date(NOW - 60 * DAY), end: new Date(NOW - 40 * DAY), status: 410 }],
  sunsetAt: new Date(NOW - DAY),
  afterSunset: "gone",
});
const REDIRECTING = { ...POLICY, afterSunset: "redirect" } as const;
/** When a request comes, by the clock of the application: caches have their own. */
const INSTANTS = {
  before: NOW - 100 * DAY,
  brownout: NOW - 50 * DAY,
  after: NOW,
  expired: NOW + 200 * DAY,
};
const END = NOW + 100 * DAY;

const USERS = ["Basic YQ==", "Basic Yg=="] as const;
const [EXTENDED] = USERS;
/** What an application answers, in ways that caches keep, and which caches share it by themselves. */
const ANSWERS: Record<
  string,
  [status: number, fields: Record<string, string>, sharing: CacheName[]]
> = {
  nothing: [200, {}, ["varnish"]],
  "max-age": [200, { "Cache-Control": "max-age=600" }, CACHES],
  public: [200, { "Cache-Control": "public, max-age=600, s-maxage=900" }, CACHES],
  expires: [200, { Expires: new Date(NOW + 600_000).toUTCString() }, CACHES],
  // nginx obeys it if it comes first.
  "X-Accel-Expires": [200, { "X-Accel-Expires": "600", "Cache-Control": "private" }, ["nginx"]],
  "Surrogate-Control": [
    200,
    { "Cache-Control": "private, max-age=600", "Surrogate-Control": "max-age=600" },
    ["varnish"],
  ],
  "a redirect": [302, { Location: "/elsewhere", "Cache-Control": "max-age=600" }, CACHES],
  "a plain redirect": [302, { Location: "/elsewhere" }, []],
  missing: [404, { "Cache-Control": "max-age=600" }, ["varnish", "nginx"]],
  forbidden: [403, { "Cache-Control": "max-age=600" }, ["nginx"]],
  failed: [500, {}, []],
};

/** What an application does with a request. */
interface Subject {
  readonly kind: "plain" | "retire" | "redirect" | "withLifecycle";
  /** The field by which the application knows a user. Caches know of `authorization` only. */
  readonly identity: "x-api-key" | "authorization";
  readonly phase: keyof typeof INSTANTS;
  readonly answer: string;
  readonly maxAge?: number | undefined;
}

/** Starts an application that does with a request what is registered for its path. */
async function startApplication() {
  const subjects: Subject[] = [];
  const server = createServer((request, response) => {
    const { url = "", method = "", headers } = request;
    const { kind, identity, phase, answer, maxAge } = subjects[Number(url.slice(1))] as Subject;
    const [status, given] = ANSWERS[answer] as typeof ANSWERS[string];
    const user = String(headers[identity]);
    const policy = kind === "redirect" ? REDIRECTING : POLICY;
    const record: CallRecord<RequestHead, readonly unknown[], string> = {
      recognize: (policy, { headers }) => {
        const client = headers.get(identity) ?? "";
        return { client, policy: extendedPolicy(policy, client === EXTENDED ? END : undefined) };
      },
      ...{ arrive: () => true, count() {}, leave() {} },
    };
    const options = { maxAge, clock: () => INSTANTS[phase], successor: () => "/v2" };
    const apply = retirementOf(policy, options, record);
    const fields = { ...given, "X-Answers": user };
    const answerNow = () => response.writeHead(status, fields).end(user);
    if (kind === "plain") return void answerNow();
    if (kind !== "withLifecycle") return middlewareOf(apply)(request, response, answerNow);
    const asked = new Request(`http://test${url}`, { method, headers: headers as HeadersInit });
    handlerOf(() => new Response(user, { status, headers: fields }), apply)(asked)
      .then(async (answered) => {
        response.writeHead(answered.status, Object.fromEntries(answered.headers));
        response.end(new Uint8Array(await answered.arrayBuffer()));
      });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    /** Returns a path that no cache knows. */
    register: (subject: Subject) => `/${subjects.push(subject) - 1}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Returns what a user gets: the status, whose answer it is, and the sunset. */
async function ask(port: number, path: string, method: string, init: HeadersInit) {
  const url = `http://127.0.0.1:${port}${path}`;
  const response = await fetch(url, { method, headers: init, redirect: "manual" });
  const content = await response.text();
  const { status, headers } = response;
  const whose = headers.get("x-answers");
  if (method === "GET" && whose !== null) assertEquals(content, whose);
  return [status, whose, headers.get("sunset")].join(" ");
}

type Application = Awaited<ReturnType<typeof startApplication>>;

/** Returns whether anybody gets through a cache what is not meant for them, in any order of requests. */
async function isMixedUp(application: Application, port: number, subject: Subject) {
  const expected = new Map<string, string>();
  const fieldsOf = (user: string) => ({ [subject.identity]: user });
  for (const user of USERS) {
    const path = application.register(subject);
    expected.set(user, await ask(application.port, path, "GET", fieldsOf(user)));
  }
  for (const users of [USERS, USERS.toReversed()]) {
    for (const methods of [["GET", "HEAD"], ["HEAD", "GET"]]) {
      const path = application.register(subject);
      for (const method of methods) {
        for (const user of [...users, ...users]) {
          const got = await ask(port, path, method, fieldsOf(user));
          if (got !== expected.get(user)) return true;
        }
      }
    }
  }
  return false;
}

/** Lists what applications do: where somebody is answered, in every way. */
function* subjects(): Generator<Subject> {
  const kinds: [Subject["kind"], Subject["identity"], Subject["phase"][]][] = [
    ["retire", "x-api-key", ["before", "brownout", "after", "expired"]],
    ["redirect", "x-api-key", ["after", "expired"]],
    ["withLifecycle", "x-api-key", ["before", "brownout", "after", "expired"]],
    ["withLifecycle", "authorization", ["before", "after"]],
  ];
  for (const [kind, identity, phases] of kinds) {
    for (const phase of phases) {
      const isRemoved = phase === "after" || phase === "expired";
      for (const answer of phase === "expired" ? ["nothing"] : Object.keys(ANSWERS)) {
        for (const maxAge of isRemoved ? [undefined, 300] : [undefined]) {
          yield { kind, identity, phase, answer, maxAge };
        }
      }
    }
  }
}

for (const cache of CACHES) {
  needing(...needsOf(cache))(
    `${cache} gives no client what was meant for another, where one has more time`,
    async () => {
      await using application = await startApplication();
      await using daemon = await startCache(cache, application.port);
      const wrong: unknown[] = [];
      for (const subject of subjects()) {
        if (await isMixedUp(application, daemon.port, subject)) wrong.push(subject);
      }
      assertEquals(wrong, []);
      const shared: string[] = [];
      for (const answer of Object.keys(ANSWERS)) {
        const subject = { kind: "plain", identity: "x-api-key", phase: "before", answer } as const;
        if (await isMixedUp(application, daemon.port, subject)) shared.push(answer);
      }
      const sharing = Object.keys(ANSWERS).filter((answer) => ANSWERS[answer]?.[2].includes(cache));
      assertEquals(shared, sharing, "without the library, the cache shares what it may");
    },
  );
}
