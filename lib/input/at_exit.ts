/** What is left to do when a process ends. */

import process from "node:process";

/**
 * Calls an action when the process exits, unless it is killed.
 *
 * @returns Forgets the action.
 */
export function atExit(action: () => void): () => void {
  process.on("exit", action);
  globalThis.addEventListener?.("unload", action); // all that Deno.exit() tells of, and Node lacks it
  return () => {
    process.off("exit", action);
    globalThis.removeEventListener?.("unload", action);
  };
}

/** The signals that ask a process to end, and its exit status then: 128 and the signal's number. */
const SIGNALS = [["SIGINT", 130], ["SIGTERM", 143]] as const;

/**
 * Makes Ctrl-C and SIGTERM exit, where they would kill the process.
 *
 * @returns Undoes it.
 */
export function exitOnSignals(): () => void {
  const undo = SIGNALS.map(([signal, status]) => {
    const exit = () => process.exit(status);
    process.on(signal, exit);
    return () => process.off(signal, exit);
  });
  return () => undo.forEach((each) => each());
}
