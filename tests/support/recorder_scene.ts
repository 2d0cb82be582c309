/** Processes that keep a record in one ledger, by clocks of the test. */

import { StorageError } from "../../lib/errors/storage_error.ts";
import { ExitError } from "../../lib/errors/exit_status.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { LogEvent } from "../../lib/log/log.ts";
import { Recorder, type RecorderOptions } from "../../lib/usage/record/recorder.ts";
import type { Session } from "../../lib/usage/record/records.ts";
import { usageCommand } from "../../lib/usage/usage_command.ts";
import type { Verdict } from "../../lib/usage/verdict/verdict.ts";
import { countOne, NOON, PROCESS } from "./counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "./ledger_at.ts";
import { SOURCE } from "./usage_report.ts";

/** The route that every process counts. */
export const ROUTE = "/audio/:token";

/** The times of a session, relative to noon, and its end. */
export type Times = [began: number, reported: number, ended: Session["ended"]];

/** In place of a method of the ledger: the database does not answer. */
export const down = () => Promise.reject(new StorageError("sqlite", "down"));

/** An empty ledger at noon, and the clocks of the database and of one machine. */
export async function openScene() {
  const database = await openLedgerDatabase();
  const clocks = { here: NOON, lifetime: 0.25, database: NOON };
  const timeline = { name: "A" };
  const open = () => ledgerAt(database, () => clocks.database, () => `'${timeline.name}'`);
  const ledger = open();
  return {
    clocks,
    timeline,
    ledger,
    /** Another view of the ledger, of which methods can be replaced. */
    open,
    pass(time: number) {
      clocks.here += time;
      clocks.lifetime += time;
      clocks.database += time;
    },
    /** The machine sleeps: its monotonic clock stands still. */
    sleep(time: number) {
      clocks.here += time;
      clocks.database += time;
    },
    async start(options: Partial<RecorderOptions> = {}) {
      const events: LogEvent[] = [];
      const recorder = new Recorder({
        ledger,
        policies: { [ROUTE]: definePolicy({ deprecatedAt: "2027-01-01" }) },
        process: PROCESS,
        retainDays: 30,
        clock: () => clocks.here,
        lifetime: () => clocks.lifetime,
        log: (event) => events.push(event),
        ...options,
      });
      await recorder.start();
      const call = (userAgent = "curl") => countOne(recorder.meter, { userAgent });
      /** Answers a call once its intent is held, and counts it. Returns whether it did. */
      const serve = async () => {
        const isHeld = recorder.intents.isHeld(ROUTE) || await recorder.intents.hold(ROUTE);
        if (isHeld) call();
        return isHeld;
      };
      return { recorder, intents: recorder.intents, events, call, serve };
    },
    /**
     * Asks the gate, as an operator does.
     *
     * @param args More arguments of the command.
     * @param through The ledger as the gate reaches it.
     */
    async gate(args: readonly string[] = [], through = ledger) {
      let printed = "";
      const command = usageCommand({
        withSource: (_, action) => action({ ...SOURCE, ledger: through }),
        print(text) {
          printed = text;
          return Promise.resolve();
        },
        printError() {},
      });
      const asking = command.parseAsync(["--gate", "1", "--json", ...args], { from: "user" });
      await asking.catch((error) => {
        if (!(error instanceof ExitError)) throw error;
      });
      return JSON.parse(printed) as { verdict: Verdict["state"]; now: string };
    },
    sessions: async () =>
      (await ledger.sessions()).map(({ began, reported, ended }): Times => {
        return [began - NOON, reported - NOON, ended];
      }),
    calls: async () =>
      (await Array.fromAsync(ledger.usage(""))).reduce((sum, { calls }) => sum + calls, 0),
    /** Copies the tables, and returns a function that puts them back. */
    async copy() {
      const tables = ["usage", "day", "session", "intent", "hold", "ledger"].map((name) =>
        `media_head_${name}`
      );
      const run = (...texts: string[]) => database.transact(texts.map((text) => ({ text })));
      await run(...tables.map((name) => `CREATE TABLE copy_${name} AS SELECT * FROM ${name}`));
      return () =>
        run(...tables.flatMap((name) => [
          `DELETE FROM ${name}`,
          `INSERT INTO ${name} SELECT * FROM copy_${name}`,
        ]));
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
