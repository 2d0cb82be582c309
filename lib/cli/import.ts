/** `media import FILE` */

import { waitFor } from "../async/abort.ts";
import { Command } from "commander";
import type { ContentOptions } from "../publishing/import/content.ts";
import { type ImportCounts, importRecords } from "../publishing/import/import.ts";
import { type ImportLine, NEWLINE } from "../publishing/import/lines.ts";
import { printable, quoted } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { readable } from "../input/user_file.ts";
import { isWithin, refusalOfStoragePath, storagePathsOf } from "../publishing/storage_paths.ts";
import {
  type Context,
  fromUser,
  print,
  printError,
  reportWait,
  requireContentOwner,
  withStorage,
} from "./command.ts";
import { ExitError } from "../usage/command.ts";
import { interruptionSignal } from "./interruption.ts";
import { openOutput } from "./output.ts";
import { showProgress } from "./progress.ts";

interface Options {
  readonly dryRun?: boolean;
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
    .action(async (path: string, { dryRun: isDryRun = false, rejects, json }: Options) => {
      const config = context.settings();
      if (!isDryRun) await requireContentOwner(config);
      const signal = interruptionSignal();
      const storagePaths = storagePathsOf(config);
      const resolve = async (path: string) => {
        if (await isWithin(fromUser(path), storagePaths)) throw refusalOfStoragePath(path);
        return fromUser(path);
      };
      const input = await openInput(path, resolve, signal);
      await withStorage(config, { mustExist: isDryRun, signal }, async (storage) => {
        const rejected = rejects === undefined
          ? undefined
          : await openRejects(rejects, path, storagePaths);
        const refuse = async ({ number, bytes }: ImportLine, reason: string) => {
          const isEnded = bytes.at(-1) === NEWLINE; // the last line may lack a newline
          await rejected?.write(isEnded ? bytes : new Uint8Array([...bytes, NEWLINE]));
          if (json) await print(JSON.stringify({ line: number, outcome: "refused", reason }));
          else printError(`media: line ${number}: ${printable(reason)}`);
        };
        let lines = 0;
        const onProgress = () => showProgress(`${(++lines).toLocaleString("en")} lines`);
        const outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
        const report = (text: string) => printError(`media: ${text}`);
        let isLeft = false;
        const reportLeft = (text: string) => {
          isLeft = true;
          report(text);
        };
        const reports = { refuse, report, reportLeft, onProgress };
        const options = { outcomes, isDryRun, signal, resolve, ...reports };
        let isComplete = false;
        try {
          await importRecords(storage, input, options);
          isComplete = true;
        } finally {
          await rejected?.close();
          const summary = { ...outcomes, dryRun: isDryRun, complete: isComplete };
          await print(json ? JSON.stringify(summary) : toSummary(outcomes, isDryRun, isComplete));
        }
        if (outcomes.refused > 0 || isLeft) throw new ExitError(1);
      });
    });
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
    (isComplete ? "" : "; stopped before the end: import again to continue");
}

async function openInput(path: string, resolve: ContentOptions["resolve"], signal: AbortSignal) {
  if (path === "-") return Deno.stdin.readable; // not every system has /dev/stdin
  const place = await resolve(path);
  // A pipe opens only when another process opens it to write.
  const opening = readable(path, () => Deno.open(place));
  const file = await waitFor(quoted(path), opening, { signal, onWait: reportWait });
  if (!(await file.stat()).isDirectory) return file.readable;
  file.close();
  throw new RefusedError(`${quoted(path)} is a folder, not a file`);
}

/** Opens the file for refused lines. It must not be the input. */
async function openRejects(path: string, input: string, storagePaths: readonly string[]) {
  if (await isWithin(fromUser(path), [input === "-" ? "/dev/stdin" : fromUser(input)])) {
    throw new RefusedError(
      `${quoted(path)} is the file being imported; give another for --rejects`,
    );
  }
  return await openOutput(path, storagePaths);
}
