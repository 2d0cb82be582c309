/** Ledgers with some of their methods replaced, and with a clock of the test's. */

import type { RecorderOptions } from "../../lib/usage/recorder.ts";

/** What a recorder uses of a ledger. */
export type RecordingLedger = RecorderOptions["ledger"];

/** Returns a ledger with some of its methods replaced. */
export function altered(
  ledger: RecordingLedger,
  changes: Partial<RecordingLedger>,
): RecordingLedger {
  return {
    time: () => ledger.time(),
    add: (...args) => ledger.add(...args),
    declare: (...args) => ledger.declare(...args),
    heartbeats: () => ledger.heartbeats(),
    forget: (...args) => ledger.forget(...args),
    usage: (fromDay) => ledger.usage(fromDay),
    ...changes,
  };
}

/** Returns a ledger whose database has another clock. */
export function ledgerAt(ledger: RecordingLedger, now: () => number): RecordingLedger {
  return altered(ledger, { time: async () => ({ ...await ledger.time(), now: now() }) });
}
