/** Capturing what commands print. */

import { stub } from "@std/testing/mock";
import fs from "node:fs";
import process from "node:process";

/**
 * Passes on what this process prints to standard output, even if that is a file, until disposed of.
 *
 * @param take Takes a text. An error that it throws is one of writing.
 */
export function captureOutput(take: (text: string) => void): Disposable {
  const write = ((bytes: Uint8Array, done: () => void) => {
    take(new TextDecoder().decode(bytes));
    done();
    return true;
  }) as typeof process.stdout.write;
  const fstat = (() => ({ isFile: () => false })) as unknown as typeof fs.fstatSync;
  const stubs = new DisposableStack();
  stubs.use(stub(process.stdout, "write", write));
  stubs.use(stub(fs, "fstatSync", fstat));
  return stubs;
}
