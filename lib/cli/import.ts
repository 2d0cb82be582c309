/** `media import FILE` */

import { waitFor } from "../async/abort.ts";
import { Command } from "commander";
import type { ContentOptions } from "../publishing/import/content.ts";
import { type ImportCounts, importRecords } from "../publishing/import/import.ts";
import { type ImportLine, NEWLINE } from "../publishing/import/lines.ts";
import type { RecordError } from "../publishing/import/record.ts";
import { printable, quoted } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { readable } from "../input/user_file.ts";
import { isWithin, refusalOfOwn } from "../publishing/sources.ts";
import {
  type Context,
  ExitError,
  fromUser,
  ownPlaces,
  print,
  printError,
  reportWait,
  withStorage,
} from "./command.ts";
import { interruptionSignal } from "./interruption.ts";
import { openOutput, type Output } from "./output.ts";
import { showProgress } from "./progress.ts";

interface Options {
  readonly dryRun?: true;
  readonly rejects?: string;
  readonly json?: true;
}

export function importCommand(context: Context): Command {
  return new Command("import")
    .description(
      "Publish what a file lists: one JSON object per line, as printed by `media export`.",
    )
    .argument("<file>", "the file to read, or - for standard input")
    .option("--dry-run", "say what would be done, without doing it")
    .option("--rejects <file>", "write refused lines to this file, unchanged")
    .option("--json", "print one JSON object for each refused line, and the counts at the end")
    .action(async (path: string, { dryRun, rejects, json }: Options) => {
      const config = context.settings();
      const signal = interruptionSignal();
      const own = ownPlaces(config);
      const resolve = async (path: string) => {
        if (await isWithin(fromUser(path), own)) throw refusalOfOwn(path);
        return fromUser(path);
      };
      const { stream, info } = await openInput(path, resolve, signal);
      const isDryRun = dryRun === true;
      await withStorage(config, { mustExist: isDryRun, signal }, async (storage) => {
        const rejected = rejects === undefined ? undefined : await openRejects(rejects, path, own);
        const refuse = async (line: ImportLine, reason?: RecordError) => {
          await rejected?.write(rejectedBytes(line));
          if (reason === undefined) return;
          if (json) await print(JSON.stringify(toRefusal(line, reason)));
          else printError(`media: line ${line.number}: ${printable(reason.message)}`);
        };
        const size = info?.isFile ? info.size : undefined;
        let [lines, bytes] = [0, 0];
        const advance = (more: number) => {
          bytes += more;
          lines++;
          showProgress(`${lines.toLocaleString("en")} lines`, size && bytes / size);
        };
        const outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
        const options = { outcomes, isDryRun, signal, resolve, refuse, advance };
        let isComplete = false;
        try {
          await importRecords(storage, stream, options);
          isComplete = true;
        } finally {
          await rejected?.close();
          const end = { ...outcomes, dryRun: isDryRun, complete: isComplete };
          await print(json ? JSON.stringify(end) : toSummary(outcomes, isDryRun, isComplete));
        }
        if (outcomes.refused > 0) throw new ExitError(1);
      });
    });
}

function toRefusal({ number }: ImportLine, { field, value, reason }: RecordError) {
  const isPlain = typeof value !== "object" || value === null;
  return { line: number, outcome: "refused", field, value: isPlain ? value : undefined, reason };
}

function toSummary(
  { added, unchanged, refused, unpublished }: ImportCounts,
  isDryRun: boolean,
  isComplete: boolean,
): string {
  const count = (records: number) => records.toLocaleString("en");
  const tombstones = unpublished === 0 ? "" : ` (${count(unpublished)} of them unpublished)`;
  return (isDryRun ? "Dry run. Would be added: " : "Added: ") + count(added) + tombstones +
    `; unchanged: ${count(unchanged)}; refused: ${count(refused)}` +
    (isComplete ? "" : "; stopped before the end: import the same input again to continue");
}

/** Opens the input, with its information if known. */
async function openInput(
  path: string,
  resolve: ContentOptions["resolve"],
  signal: AbortSignal,
) {
  if (path === "-") { // not every system has /dev/stdin
    const info = await Deno.stat("/dev/stdin").catch(() => undefined);
    return { stream: Deno.stdin.readable, info };
  }
  const place = await resolve(path);
  // A pipe opens once somebody writes to it.
  const opening = readable(path, () => Deno.open(place));
  const file = await waitFor(quoted(path), opening, { signal, onWait: reportWait });
  const info = await file.stat();
  if (!info.isDirectory) return { stream: file.readable, info };
  file.close();
  throw new RefusedError(`${quoted(path)} is a folder, not a file`);
}

/** Opens the file for refused lines, which must not be the input. */
async function openRejects(path: string, input: string, own: readonly string[]): Promise<Output> {
  if (await isWithin(fromUser(path), [input === "-" ? "/dev/stdin" : fromUser(input)])) {
    throw new RefusedError(
      `${quoted(path)} is the file being imported; give another for --rejects`,
    );
  }
  return await openOutput(path, own);
}

/** Returns the bytes of a refused line; the input may end without a newline. */
function rejectedBytes({ bytes, isWhole }: ImportLine): Uint8Array {
  return isWhole && bytes.at(-1) !== NEWLINE ? new Uint8Array([...bytes, NEWLINE]) : bytes;
}
