/** The suite of exclusive actions, for every engine. */

import { assertEquals } from "@std/assert";
import type { Engine } from "../../../lib/storage/database/engine.ts";
import type { Test } from "../../support/permissions.ts";

/** Engines on one database, as in several processes. */
export interface Engines extends AsyncDisposable {
  readonly engines: readonly Engine[];
}

/** Runs the suite on an engine. */
export function testExclusion(
  name: string,
  open: () => Promise<Engines>,
  register: Test = Deno.test,
): void {
  const test = (what: string, body: (engines: readonly Engine[]) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using opened = await open();
      await body(opened.engines);
    });

  test("exclusively() runs one action at a time, which may use the database or fail", async (engines) => {
    let [running, most, count] = [0, 0, 0];
    const run = (engine: Engine, index: number) =>
      engine.exclusively(async () => {
        most = Math.max(most, ++running);
        await engine.catalogue.isEmpty();
        await new Promise((resolve) => setTimeout(resolve, 2));
        running--;
        if (index === 3) throw new RangeError("no");
        return ++count;
      });
    const settled = await Promise.allSettled(
      engines.flatMap((engine) => Array.from({ length: 8 }, (_, index) => run(engine, index))),
    );
    assertEquals([most, count], [1, 7 * engines.length]);
    const faults = settled.filter(({ status }) => status === "rejected");
    assertEquals(faults.length, engines.length);
  });
}
