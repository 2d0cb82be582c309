/** How commands end: their exit statuses, and the error that ends a command with one. */

import { WrongUsageError } from "./refused_error.ts";

/** The exit statuses of commands. `usage --gate` has the last four for its verdict. */
export const EXIT_STATUS = {
  done: 0,
  /** Something was refused, or failed. */
  refused: 1,
  /** The command line or a setting is wrong. */
  wrongUsage: 2,
  clear: 0,
  called: 1,
  unknown: 3,
  /** Clear, but a sunset is announced for later. */
  announced: 4,
} as const;

/** Ends a command with an exit status, after it has printed everything. */
export class ExitError extends Error {
  override readonly name = "ExitError";

  constructor(readonly status: number) {
    super(`Exit status ${status}`);
  }
}

/**
 * Prints the error of a command that ends as none should, or that could not even be loaded.
 *
 * @returns Its exit status.
 */
export function exitStatusOfCrash(error: unknown, args: readonly string[]): number {
  try {
    console.error(error);
  } catch { // a full disk must not change the exit status
  }
  return exitStatusAfter(error, args);
}

/**
 * Returns the exit status of a command that was refused, or failed. A gate that fails knows nothing,
 * and 1 would mean that there were calls; for `lifecycle check`, 1 would mean a fault that it found.
 *
 * @param args The words after the program's name.
 */
export function exitStatusAfter(error: unknown, args: readonly string[]): number {
  if (error instanceof WrongUsageError) return EXIT_STATUS.wrongUsage;
  if (isGate(args)) return EXIT_STATUS.unknown;
  const command = args.find((word) => !word.startsWith("-"));
  return command === "check" ? EXIT_STATUS.wrongUsage : EXIT_STATUS.refused;
}

/** Returns whether the exit status has to be a verdict. */
export function isGate(args: readonly string[]): boolean {
  return args.some((word) => word.startsWith("--gate"));
}
