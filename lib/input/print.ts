/** What commands print. */

import fs from "node:fs";
import process from "node:process";
import { RefusedError } from "../errors/refused_error.ts";
import { printableLines } from "./printable.ts";

/**
 * Prints one or more lines to standard output, with unprintable characters escaped.
 *
 * @throws {RefusedError} If they cannot be written, e.g. because the reader has closed the pipe.
 */
export async function print(text: string): Promise<void> {
  await printBytes(new TextEncoder().encode(`${printableLines(text)}\n`));
}

/**
 * Writes bytes to standard output, as they are.
 *
 * @throws {RefusedError} As {@linkcode print}.
 */
export async function printBytes(bytes: Uint8Array): Promise<void> {
  try {
    await write(bytes);
  } catch (cause) {
    throw new RefusedError("The output cannot be written", { cause });
  }
}

async function write(bytes: Uint8Array): Promise<void> {
  const { stdout } = process;
  // Into a file, Node's stream writes as much as there is room for, and reports no error.
  if (fs.fstatSync(stdout.fd).isFile()) return fs.writeFileSync(stdout.fd, bytes);
  // Node also emits an error of writing, and ends if nobody listens.
  if (stdout.listenerCount("error") === 0) stdout.on("error", () => {});
  await new Promise<void>((resolve, reject) =>
    stdout.write(bytes, (error) => error ? reject(error) : resolve())
  );
}

/** The name that stands for standard output where a command writes a file. */
export const STANDARD_OUTPUT = "-";

/** Returns whether the reader has closed the pipe, such as `head`, which has read enough. */
export function isPipeClosed({ cause }: Error): boolean {
  return (cause as { code?: unknown } | undefined)?.code === "EPIPE";
}

/** Prints a message to standard error, with unprintable characters escaped. */
export function printError(text: string): void {
  try {
    console.error(printableLines(text));
  } catch { // a full disk must not change the exit status
  }
}
