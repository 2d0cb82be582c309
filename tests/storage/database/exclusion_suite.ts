/** The suite of exclusive actions, for every engine. */

import { assertEquals } from "@std/assert";
import type { Engine } from "../../../lib/storage/database/engine.ts";
import type { Test } from "../../support/permissions.ts";

/**
 * Runs the suite on an engine.
 *
 * @param withUrl Runs a test on an empty database.
 * @param open Opens an engine; several on one database are as in several processes.
 */
export function testExclusion(
  name: string,
  withUrl: (body: (url: string) => Promise<void>) => Promise<void>,
  open: (url: string) => Promise<Engine>,
  register: Test,
): void {
  const what = "exclusively() runs one action at a time, which may use the database or fail";
  register(`${name} ${what}`, () =>
    withUrl(async (url) => {
      const engines = [await open(url), await open(url)];
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
      for (const engine of engines) await engine.close();
    }));
}
