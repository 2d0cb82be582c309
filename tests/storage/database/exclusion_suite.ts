/** The suite of exclusive actions, for every engine. */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { Engine, OpenOptions } from "../../../lib/storage/database/engine.ts";
import { StorageError } from "../../../lib/storage/errors.ts";
import { fromRoot } from "../../support/paths.ts";
import type { Test } from "../../support/permissions.ts";
import { until, within } from "../../support/within.ts";

/** WAITS=true has a test wait for longer than a stopped process may hold the lock. */
const isLong = () => Deno.env.get("WAITS") === "true";

/**
 * Runs the suite on an engine.
 *
 * @param withUrl Runs a test on an empty database.
 * @param open Opens an engine; several on one database are as in several processes.
 */
export function testExclusion(
  name: string,
  withUrl: (body: (url: string) => Promise<void>) => Promise<void>,
  open: (url: string, options?: OpenOptions) => Promise<Engine>,
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

  const wait =
    "exclusively() says who holds the lock, and waits until a signal or while that is well";
  register(`${name} ${wait}`, () =>
    withUrl(async (url) => {
      await (await open(url)).close();
      const holder = new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-prompt", "--allow-all", fromRoot("tests/support/holder.ts"), url],
        stdin: "null",
        stdout: "piped",
      }).spawn();
      const output = holder.stdout.getReader();
      await within("a holder of the lock", output.read(), { process: holder });

      const waits: string[] = [];
      const interruption = new AbortController();
      const { signal } = interruption;
      const interrupted = await open(url, { signal, onWait: (what) => waits.push(what) });
      const waiting = assertRejects(() => interrupted.exclusively(() => Promise.resolve()), Error);
      await until("a report of the wait", () => waits.length > 0);
      assertMatch(waits.join("\n"), /^the lock .*\(DATABASE_URL\), which .*process \d+.* holds$/);
      interruption.abort(new Error("Ctrl-C"));
      assertEquals((await waiting).message, "Ctrl-C");

      const engine = await open(url);
      let state = "waiting";
      const patient = engine.exclusively(() => Promise.resolve()).then(
        () => state = "locked",
        (error) => {
          state = error instanceof StorageError ? "refused" : String(error);
        },
      );
      if (isLong()) {
        await new Promise((resolve) => setTimeout(resolve, 70_000));
        assertEquals(state, "waiting", "the holder is well");
        holder.kill("SIGSTOP");
        await new Promise((resolve) => setTimeout(resolve, 40_000));
        assertEquals(state, "waiting", "the holder has just been stopped");
        await within("the end of the wait for a stopped holder", patient);
        assertEquals(state, name === "SQLite" ? "refused" : "locked");
      }
      holder.kill("SIGKILL");
      await Promise.all([holder.status, output.cancel(), patient]);
      if (!isLong()) assertEquals(state, "locked", "the holder was killed");
      await engine.exclusively(() => Promise.resolve());
      await Promise.all([engine.close(), interrupted.close()]);
    }));
}
