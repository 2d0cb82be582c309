/** The record of the calls to one route, as the library asks for it. */

import { mismatch } from "../lifecycle/mismatch.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { isPromise, type RequestHead } from "../lifecycle/serving/options.ts";
import type { CallRecord } from "../lifecycle/serving/retirement.ts";
import type { FaultLog } from "../log/log.ts";
import type { Recorder } from "./record/recorder.ts";

export function callRecord<Incoming extends RequestHead, Rest extends readonly unknown[]>(
  route: string,
  policy: Policy,
  { recorder, faults, identify, answers }: {
    readonly recorder: Recorder;
    readonly faults: FaultLog;
    /** Returns the client's id. */
    readonly identify: ((request: Incoming, ...rest: Rest) => unknown) | undefined;
    readonly answers: readonly number[] | undefined;
  },
): CallRecord<Incoming, Rest> {
  return {
    policy: () => recorder.policies[route] ?? policy,
    answers: new Set(answers),
    arrive: () => recorder.arrive(),
    count({ phase, until, status, breaks }, { method, headers }, request, rest, policy) {
      const moment = { phase, until };
      const { meter } = recorder;
      const counter = meter.counterFor({ route, policy, method, moment, status, breaks });
      const { id, failure } = idOf(() => identify?.(request, ...rest));
      counter.count(headers, id);
      if (failure !== undefined) faults.log(failure, { route }); // after the count, whatever fails
    },
    leave: () => recorder.leave(),
  };
}

/** The id of a client, if it has one, and why it could not be learned, if so. */
interface ClientId {
  readonly id: string | undefined;
  readonly failure?: unknown;
}

function idOf(identify: () => unknown): ClientId {
  try {
    return { id: idFrom(identify()) };
  } catch (error) {
    return { id: NO_ID, failure: error ?? "the option client failed" };
  }
}

/** An id that counts as "(other)". */
const NO_ID = "";

/**
 * Returns the id in what the option `client` returned; `undefined` if the client has none.
 *
 * @throws {TypeError} If it is neither a string nor a finite number.
 */
function idFrom(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" || Number.isFinite(value)) return String(value);
  if (isPromise(value)) value.then(undefined, () => {}); // nobody else handles its rejection
  throw new TypeError(mismatch("client", value, "a function that returns a string or number"));
}
