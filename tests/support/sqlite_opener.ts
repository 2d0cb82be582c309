/**
 * A worker that opens databases simultaneously with others. It receives the databases and a shared
 * counter, and sends back errors.
 */

import { SqliteDatabase } from "../../lib/storage/database/sqlite/database.ts";
import { CATALOGUE } from "../../lib/storage/database/sqlite/schema.ts";

/** The message to a worker. */
export interface OpenerTask {
  readonly paths: readonly string[];
  readonly threads: number;
  readonly arrivals: Int32Array;
}

/** The part of a worker's global scope used here. */
interface Scope {
  onmessage: ((event: MessageEvent<OpenerTask>) => void) | null;
  postMessage(faults: string[]): void;
}

const scope = globalThis as unknown as Scope;

scope.onmessage = async ({ data: { paths, threads, arrivals } }) => {
  const faults: string[] = [];
  for (const [index, path] of paths.entries()) {
    Atomics.add(arrivals, 0, 1);
    while (Atomics.load(arrivals, 0) < (index + 1) * threads); // spins until the others arrive
    try {
      const options = { schema: CATALOGUE, synchronous: "FULL", timeout: 10_000 } as const;
      const database = await SqliteDatabase.open(path, options);
      const [row] = await database.query({ text: "SELECT version FROM catalogue" });
      if (row?.["version"] !== 0) faults.push("no version");
      await database.close();
    } catch (error) {
      faults.push(String((error as Error).cause));
    }
  }
  scope.postMessage(faults);
};
