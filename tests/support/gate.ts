/** The gate of `lifecycle usage`, asked in this process. */

import { lifecycle } from "./lifecycle_cli.ts";

/** Returns its exit status, and what it prints to standard output. */
export async function askGate(
  database: string,
  ...words: string[]
): Promise<[status: number, text: string]> {
  const { code, stdout } = await lifecycle(
    ...["usage", "--database", database, "--gate", "1"],
    ...words,
  );
  return [code, stdout];
}
