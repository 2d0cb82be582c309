/** The gate of `lifecycle usage`, asked in this process. */

import { assert, assertEquals } from "@std/assert";
import { lifecycle } from "./lifecycle_cli.ts";

/** The verdicts, as exit statuses of the gate. */
export const [CLEAR, CALLED, UNKNOWN, ANNOUNCED] = [0, 1, 3, 4] as const;

/** How a verdict begins in the text, and what it is in the JSON, by its exit status. */
const WORDS: Readonly<Record<number, readonly [text: string, json: string]>> = {
  [CLEAR]: ["Clear: ", "clear"],
  [CALLED]: ["Still called: ", "called"],
  [UNKNOWN]: ["Unknown: ", "unknown"],
  [ANNOUNCED]: ["Clear, but announced until ", "announced"],
};

/** A gap in the JSON. */
interface JsonGap {
  readonly kind: string;
  readonly routes: readonly string[];
  readonly start: string;
  readonly end?: string;
  readonly process?: { readonly pid: number };
}

/** A verdict, as the gate says it in each way. */
interface Verdict {
  readonly status: number;
  readonly text: string;
  readonly json: {
    readonly asOf: string;
    readonly gaps: readonly JsonGap[];
    readonly gapCount: number;
    readonly clients: readonly { readonly client: string; readonly calls: number }[];
    readonly verdicts: readonly {
      readonly route: string;
      readonly verdict: string;
      readonly causes: readonly { readonly cause: string }[];
    }[];
  };
}

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

/** Asks for a verdict in text and as JSON, and checks that these and the exit statuses agree. */
export async function askVerdict(database: string, ...words: string[]): Promise<Verdict> {
  const [[status, text], [jsonStatus, json]] = [
    await askGate(database, ...words),
    await askGate(database, "--json", ...words),
  ];
  const said = JSON.parse(json || "{}");
  const [start = "", state] = WORDS[status] ?? [];
  assert(text.startsWith(start), `${status}: ${text}`);
  assertEquals([jsonStatus, said.verdict], [status, state], text);
  const hasGaps = /^(?:Not on record: |.* mounts? no route, )/m.test(text);
  assertEquals(hasGaps, said.gaps.length > 0, `${json}\n${text}`);
  return { status, text, json: said };
}
