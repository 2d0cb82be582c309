/** Scenes that mostly wait for processes, run a few at a time within one test. */

import { Semaphore } from "../../lib/async/semaphore.ts";

/** Scenes at a time: two cores are busy with so many processes that start. */
const PLACES = 6;

/**
 * Runs all scenes, each named by its first member.
 *
 * @throws {AggregateError} With the errors of all scenes that fail, and their names.
 */
export async function sideBySide<Scene extends readonly [what: string, ...unknown[]]>(
  scenes: readonly Scene[],
  run: (scene: Scene) => Promise<void>,
): Promise<void> {
  const places = new Semaphore(PLACES);
  const { signal } = new AbortController();
  const errors: Error[] = [];
  await Promise.all(scenes.map(async (scene) => {
    const release = await places.acquire(signal);
    await run(scene).catch((cause) =>
      errors.push(new Error(`In the scene "${scene[0]}"`, { cause }))
    );
    release();
  }));
  if (errors.length > 0) throw new AggregateError(errors);
}
