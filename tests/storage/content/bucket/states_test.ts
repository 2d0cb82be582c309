/** HEAD and GET of objects that a store's HEAD would call sound. */

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { AwsV4Signer } from "aws4fetch";
import type { ByteRange } from "../../../../lib/http/byte_range.ts";
import type { PublishedItem } from "../../../../lib/storage/item.ts";
import { newToken } from "../../../../lib/storage/token.ts";
import { newMetadata } from "../../storage_suite.ts";
import { openScripted, serverOn } from "../../../support/bucket_server.ts";
import { fakeTimers, quietly } from "../../../support/fake_timers.ts";
import { needing } from "../../../support/permissions.ts";
import { randomFrom } from "../../../support/random.ts";
import { refusal, response, type Script, ScriptedStore } from "../../../support/scripted_store.ts";
import { FEWEST_SEEDS } from "../../../support/seeds.ts";

/** The ETag of every object, as it was published. */
const VALIDATOR = '"v1"';

/** A request for an object. */
interface Asked {
  readonly isHead: boolean;
  /** The range that was requested. */
  readonly range: ByteRange | undefined;
  readonly isConditional: boolean;
  /** The length of the object. */
  readonly length: number;
}

interface State {
  /** Returns the answer; none if it is that of a sound object. */
  readonly answer?: (asked: Asked) => string | Promise<string> | undefined;
  /** The status of the server's GET. */
  readonly status: 200 | 502 | 503;
  /** Whether a check shows it that asks for the first byte. */
  readonly isSeenAtFirst?: boolean;
  /** Whether the store closes the connection after its answer, which is cut off. */
  readonly isCutOff?: boolean;
  readonly length: number;
}

const [SHORT, LONG] = [40, 200_000];

/** Returns the answer of a sound store, without what comes after some byte. */
function sound({ isHead, range, length }: Asked, end = length): string {
  const [first, last] = [range?.first ?? 0, range?.last ?? length - 1];
  const content = "x".repeat(Math.max(0, Math.min(last + 1, end) - first));
  return response(range === undefined ? 200 : 206, {
    ETag: VALIDATOR,
    "Content-Length": String(last - first + 1),
    ...range && { "Content-Range": `bytes ${first}-${last}/${length}` },
  }, isHead ? "" : content);
}

/** A state in which every GET gets this answer, while a HEAD finds the object sound. */
const onGet = (answer: string): NonNullable<State["answer"]> => ({ isHead }) =>
  isHead ? undefined : answer;

/** A state in which the content ends at some byte. */
const upTo = (end: number): NonNullable<State["answer"]> => (asked) => {
  if (asked.isHead) return undefined;
  return (asked.range?.first ?? 0) >= end ? refusal(500, "InternalError") : sound(asked, end);
};

/** States in which stores answer a GET otherwise than a HEAD, as their users report. */
const STATES = {
  "sound": { length: SHORT, status: 200 },
  "sound and long": { length: LONG, status: 200 },
  "sound, in a store that ignores ranges": {
    length: LONG,
    status: 200,
    answer: (asked) => sound({ ...asked, range: undefined }),
  },
  "sound, in a store that states no total": {
    length: LONG,
    status: 200,
    answer: (asked) => sound(asked).replace(/(Content-Range: .*\/)\d+/, "$1*"),
  },
  "archived": {
    length: SHORT,
    status: 503,
    isSeenAtFirst: true,
    answer: onGet(refusal(403, "InvalidObjectState")),
  },
  "encrypted by a key that is disabled": {
    length: SHORT,
    status: 503,
    isSeenAtFirst: true,
    answer: onGet(refusal(400, "KMS.DisabledException")),
  },
  "encrypted by a key that the server may not use": {
    length: LONG,
    status: 503,
    isSeenAtFirst: true,
    answer: onGet(refusal(403, "AccessDenied")),
  },
  "unreadable": {
    length: SHORT,
    status: 503,
    isSeenAtFirst: true,
    answer: onGet(refusal(503, "SlowDownRead")),
  },
  "deleted, which HEAD does not know": {
    length: SHORT,
    status: 503,
    isSeenAtFirst: true,
    answer: onGet(refusal(404, "NoSuchKey")),
  },
  "never as published, for a GET with If-Match": {
    length: LONG,
    status: 502,
    isSeenAtFirst: true,
    answer: ({ isHead, isConditional }) =>
      !isHead && isConditional ? refusal(412, "PreconditionFailed") : undefined,
  },
  "beyond a cap on bandwidth": {
    length: SHORT,
    status: 503,
    answer: ({ isHead, range }) =>
      isHead || range !== undefined ? undefined : refusal(403, "AccessDenied"),
  },
  "without its tail": { length: SHORT, status: 503, answer: upTo(30), isCutOff: true },
  "long, and without its tail": { length: LONG, status: 503, answer: upTo(50_000), isCutOff: true },
  "stalled": {
    length: SHORT,
    status: 503,
    answer: (asked) =>
      asked.isHead || asked.range !== undefined ? undefined : sound(asked, SHORT - 1),
  },
  "silent": {
    length: SHORT,
    status: 503,
    isSeenAtFirst: true,
    answer: () => new Promise<string>(() => {}),
  },
} as const satisfies Record<string, State>;

type StateName = keyof typeof STATES;

/** Objects in place, each in a state. */
class ObjectStates {
  /** By number. */
  readonly states: StateName[];
  readonly #lengths: number[];

  constructor(states: StateName[]) {
    this.states = [...states];
    this.#lengths = states.map((state) => STATES[state].length);
  }

  get references() {
    return this.#lengths.map((length, index) => (
      { length, location: `s3://media/o/${index}`, validator: VALIDATOR }
    ));
  }

  readonly script: Script = (head) => {
    const [, method, number] = /^(\w+) \/media\/o\/(\d+) /.exec(head) ?? [];
    if (number === undefined) return response(200, {}, "name");
    const [, first, last] = /^range: bytes=(\d+)-(\d+)\r$/im.exec(head) ?? [];
    const asked = {
      isHead: method === "HEAD",
      range: first === undefined ? undefined : { first: Number(first), last: Number(last) },
      isConditional: /^if-match:/im.test(head),
      length: this.#lengths[Number(number)] as number,
    };
    const { answer }: State = STATES[this.states[Number(number)] as StateName];
    return answer?.(asked) ?? sound(asked);
  };

  /** Whether the store keeps a connection open after its answer. */
  readonly isPatient = (head: string): boolean => {
    const [, number] = /^\w+ \/media\/o\/(\d+) /.exec(head) ?? [];
    const state: State | undefined = STATES[this.states[Number(number)] as StateName];
    return number !== undefined && state?.isCutOff !== true;
  };
}

const START = Date.parse("2027-01-01");
const NAMES = Object.keys(STATES) as StateName[];

/** Milliseconds until a request to the store fails, in a time that passes only while nothing happens. */
const TIMEOUT_MS = 400;

/** Opens a server on objects in these states. */
async function openServer(initial: readonly StateName[]) {
  await using stack = new AsyncDisposableStack();
  const objects = new ObjectStates([...initial]);
  const fake = stack.use(new ScriptedStore());
  fake.isPatient = objects.isPatient;
  const settings = { timeoutMs: TIMEOUT_MS };
  const { storage, items, close } = await openScripted(fake, objects.references, settings);
  stack.defer(close);
  const clock = { now: START };
  const { send } = serverOn(storage, clock);
  // Time stands still while a request is signed, which takes another thread, and until it is answered.
  const underWay = new Set<unknown>();
  const during = <T>(what: unknown, promise: Promise<T>) => {
    underWay.add(what);
    return promise.finally(() => underWay.delete(what));
  };
  const { sign } = AwsV4Signer.prototype;
  stack.use(
    stub(AwsV4Signer.prototype, "sign", function () {
      return during(this, sign.call(this));
    }),
  );
  const { fetch } = globalThis;
  let last = 0;
  stack.use(
    stub(globalThis, "fetch", (url, options) => {
      const headers = new Headers(options?.headers);
      headers.set("X-Number", String(++last));
      return during(last, fetch(url, { ...options, headers }));
    }),
  );
  fake.script = (head) => {
    const answer = objects.script(head);
    const isSilent = answer instanceof Promise;
    if (isSilent) underWay.delete(Number(/^x-number: (\d+)/im.exec(head)?.[1]));
    return answer;
  };
  let seen = 0;
  const isActive = () => {
    const before = seen;
    seen = fake.events;
    return seen !== before || underWay.size > 0;
  };
  const timers = stack.use(fakeTimers(quietly(isActive)));
  const all = stack.move();
  return {
    objects,
    storage,
    items,
    clock,
    timers,
    send,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

needing("processes")(
  "no HEAD is 200 beside GETs that fail, in whatever state an object is",
  async () => {
    await using server = await openServer(NAMES);
    const { objects, items, clock, timers, send } = server;
    const failed = new Set<StateName>();
    const [SECONDS, PAUSE] = [120, 1.3];
    for (let second = 0; second < SECONDS; second += PAUSE) {
      await timers.during(Promise.all(items.map(async (item, index) => {
        const name = NAMES[index] as StateName;
        const state: { status: number; isSeenAtFirst?: boolean } = STATES[name];
        const note = `${name} after ${second} s`;
        const first = await send("HEAD", item);
        const isKnown = failed.has(name) || state.isSeenAtFirst === true;
        assertEquals(first.status, isKnown ? state.status : 200, note);
        const get = await send("GET", item);
        if (get.status !== 200 || get.isCutOff) failed.add(name);
        assertEquals(get.isCutOff ? 503 : get.status, state.status, note);
        const last = await send("HEAD", item);
        assertEquals(last.status, state.status, note);
        if (!get.isCutOff) assertEquals(last.answer, get.answer, note);
      })));
      clock.now += PAUSE * 1_000;
    }
    assert(failed.size >= 10, `${failed.size} states`);
    objects.states.fill("sound");
    clock.now += 5_000;
    for (const item of items) {
      for (const method of ["HEAD", "GET"] as const) {
        const { status } = await timers.during(send(method, item));
        assertEquals(status, 200, "what is mended is served");
      }
    }
  },
);

/** An object, and what is true of it since when. */
interface Truth {
  readonly item: PublishedItem;
  readonly index: number;
  changedAt: number;
  isUnpublished: boolean;
  /** The state before. */
  before: StoreState;
  /** Whether a GET has failed since. */
  isFound: boolean;
}

type StoreState = Pick<typeof STATES[StateName], "status"> & { readonly isSeenAtFirst?: boolean };

const [MINUTE, STEPS] = [60_000, 300];

for (const seed of FEWEST_SEEDS) {
  needing("processes")(
    `objects that vanish, change, and are refused and mended are served as documented (seed ${seed})`,
    async () => {
      const random = randomFrom(seed);
      const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
      // By length, because objects keep theirs.
      const lengths = [40, 200_000];
      const others = lengths.map((length) =>
        NAMES.filter((name) => STATES[name].length === length && STATES[name].status !== 200)
      );
      const count = 40;
      const initial = Array.from({ length: count }, (_, at) => at % 2 ? "sound and long" : "sound");
      await using server = await openServer(initial as StateName[]);
      const { objects, storage, items, clock, timers, send } = server;
      const truths = items.map((item, index): Truth => ({
        item,
        index,
        changedAt: START - MINUTE,
        isUnpublished: false,
        before: STATES.sound,
        isFound: false,
      }));
      let publishedAt = START;
      const change = async (truth: Truth) => {
        const { item, index } = truth;
        const state = objects.states[index] as StateName;
        if (truth.isUnpublished) return;
        truth.before = STATES[state];
        truth.changedAt = clock.now;
        truth.isFound = false;
        if (random() < 0.03) {
          truth.isUnpublished = true;
          publishedAt = clock.now;
          await storage.catalogue.unpublish(item.token, clock.now);
        } else if (STATES[state].status !== 200) {
          objects.states[index] = initial[index] as StateName;
        } else {
          const chosen = pick(others[index % 2] as StateName[]);
          const isSlow = chosen === "silent" || chosen === "stalled";
          objects.states[index] = isSlow && random() < 0.8 ? "archived" : chosen;
        }
      };
      const seen = new Set<string>();
      for (let step = 0; step < STEPS; step++) {
        if (random() < 0.15) await change(pick(truths));
        if (random() < 0.1) { // publishing beside it
          const linked = { ...newMetadata(), location: "https://cdn.example/a" };
          await storage.catalogue.add({ ...linked, token: newToken() });
        }
        clock.now += pick([0, 0, 1, 1, 20, 100, 100, 1_000, 1_000, 5_000, 20_000]);
        const truth = pick(truths);
        const { item, index, before, changedAt } = truth;
        const name = objects.states[index] as StateName;
        const state: StoreState = STATES[name];
        const said = [];
        for (const method of pick([["GET", "HEAD"], ["HEAD", "GET"], ["HEAD"], ["GET"]] as const)) {
          const { status, isCutOff } = await timers.during(send(method, item));
          if (method === "GET" && (status >= 500 || isCutOff)) truth.isFound = true;
          said.push({ method, status: isCutOff ? 503 : status });
        }
        const age = clock.now - changedAt;
        for (const { method, status } of said) {
          const what = `step ${step}: ${method} of "${name}" ${age} ms after a change: ${status}`;
          seen.add(`${method} ${status}`);
          if (truth.isUnpublished) {
            if (clock.now - publishedAt >= 100) assertEquals(status, 410, what);
          } else if (state.status === 200) {
            // Mended: within five seconds, or ten if the store did not answer.
            assert(status === 200 || (status === before.status && age < 10_000), what);
          } else if (status === 200) {
            // Lost: within a minute, or at the first GET that reads it, whatever is asked.
            assert(before.status === 200, what);
            if (method === "GET") assert(age < 5_000, what);
            else if (state.isSeenAtFirst) assert(age < MINUTE, what);
          } else {
            assertEquals(status, state.status, what);
          }
        }
        const [first, last] = said;
        if (first?.method === "GET" && first.status >= 500) {
          assertEquals(last?.status ?? first.status, first.status, `step ${step}: HEAD after GET`);
        }
      }
      for (const method of ["GET", "HEAD"]) {
        for (const status of [200, 503]) assert(seen.has(`${method} ${status}`), `${status}`);
      }
    },
  );
}
