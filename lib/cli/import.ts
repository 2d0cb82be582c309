/**
 * `media import FILE`
 */

import { waitFor } from "../async/abort.ts";
import { Command } from "commander";
import { type ImportCounts, importRecords } from "../publishing/import/import.ts";
import { type ImportLine, NEWLINE } from "../publishing/import/lines.ts";
import type { RecordError } from "../publishing/import/record.ts";
import { printable, quoted } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { isWithin, refusalOfOwn } from "../publishing/sources.ts";
import { type Context, ExitError, fromUser, ownPlaces, print, withStorage } from "./command.ts";
import { interruptionSignal } from "./interruption.ts";
import { Progress } from "./progress.ts";

interface Options {
  readonly dryRun?: true;
  readonly rejects?: string;
  readonly json?: true;
}

/** Builds the command. */
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
      const { stream, info } = await openInput(path, signal);
      const isDryRun = dryRun === true;
      const own = ownPlaces(config);
      const resolve = async (path: string) => {
        if (await isWithin(fromUser(path), own)) throw refusalOfOwn(path);
        return fromUser(path);
      };
      await withStorage(config, { mustExist: isDryRun }, async (storage) => {
        const reject = rejects === undefined ? undefined : await openRejects(rejects, info);
        using progress = new Progress();
        const refuse = async (line: ImportLine, reason?: RecordError) => {
          await reject?.(line);
          if (reason === undefined) return;
          await progress.aside(async () => {
            if (json) await print(JSON.stringify(toRefusal(line, reason)));
            else console.error(`media: line ${line.number}: ${printable(reason.message)}`);
          });
        };
        const size = info?.isFile ? info.size : undefined;
        let [lines, bytes] = [0, 0];
        const advance = (more: number) => {
          bytes += more;
          lines++;
          progress.update(`${lines.toLocaleString("en")} lines`, size && bytes / size);
        };
        const outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
        const options = { outcomes, isDryRun, signal, resolve, refuse, advance };
        let isComplete = false;
        try {
          await importRecords(storage, stream, options);
          isComplete = true;
        } finally {
          progress[Symbol.dispose]();
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
async function openInput(path: string, signal: AbortSignal) {
  if (path === "-") return { stream: Deno.stdin.readable, info: await infoOf("/dev/stdin") };
  // A pipe opens once somebody writes to it.
  const opening = opened(path, () => Deno.open(fromUser(path)));
  const file = await waitFor(quoted(path), opening, signal);
  const info = await file.stat();
  if (!info.isDirectory) return { stream: file.readable, info };
  file.close();
  throw new RefusedError(`${quoted(path)} is a folder, not a file`);
}

/** Empties the file for refused lines, which must not be the input, and returns what adds one. */
async function openRejects(path: string, input: Deno.FileInfo | undefined) {
  const file = fromUser(path);
  const found = await infoOf(file);
  if (
    found !== undefined && found.ino !== null && found.ino === input?.ino && found.dev === input.dev
  ) {
    throw new RefusedError(
      `${quoted(path)} is the file being imported; give another for --rejects`,
    );
  }
  await opened(path, () => Deno.writeFile(file, new Uint8Array()));
  return async ({ bytes, isWhole }: ImportLine) => {
    const isLast = isWhole && bytes.at(-1) !== NEWLINE; // the input may end without
    const line = isLast ? new Uint8Array([...bytes, NEWLINE]) : bytes;
    await opened(path, () => Deno.writeFile(file, line, { append: true }));
  };
}

async function opened<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) {
      throw new RefusedError(`There is no file ${quoted(path)}`);
    }
    throw new RefusedError(`${quoted(path)} cannot be used`, { cause });
  }
}

/** Returns the information about a file, if there is one; not every system has /dev/stdin. */
function infoOf(path: string): Promise<Deno.FileInfo | undefined> {
  return Deno.stat(path).catch(() => undefined);
}
