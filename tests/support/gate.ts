/** The gate of `lifecycle usage`, asked in this process. */

import { stub } from "@std/testing/mock";
import process from "node:process";
import { runUsage } from "../../lib/usage/lifecycle_usage.ts";

/** Returns its exit status, and what it prints to standard output. */
export async function askGate(
  database: string,
  ...words: string[]
): Promise<[status: number, text: string]> {
  let text = "";
  const write = ((part: string, done?: () => void) => {
    text += part;
    done?.();
    return true;
  }) as typeof process.stdout.write;
  using _stdout = stub(process.stdout, "write", write);
  return [await runUsage(["--database", database, "--gate", "1", ...words]), text];
}
