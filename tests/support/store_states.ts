/** States of objects in which stores answer a GET otherwise than a HEAD, as their users report. */

import type { ByteRange } from "../../lib/http/byte_range.ts";
import { refusal, response, type Script } from "./scripted_store.ts";

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

export const STATES = {
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

export type StateName = keyof typeof STATES;

/** Objects in place, each in a state. */
export class ObjectStates {
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
