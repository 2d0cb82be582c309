/** `media import FILE` */

import { Command } from "commander";
import { waitFor } from "../async/abort.ts";
import { IN_MEMORY } from "../database/place.ts";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { NotCreatedError } from "../errors/storage_error.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { STANDARD_OUTPUT } from "../input/print.ts";
import { messageOf, quoted } from "../input/printable.ts";
import { readable } from "../input/user_file.ts";
import type { ContentOptions } from "../publishing/import/content.ts";
import { type ImportCounts, importLines, type LineRefusal } from "../publishing/import/import.ts";
import { type ImportInput, readInput } from "../publishing/import/input.ts";
import { type ImportLine, NEWLINE } from "../publishing/import/lines.ts";
import { readContent } from "../publishing/publish_object.ts";
import { isWithin, refusalOfStoragePath, storagePathsOf } from "../publishing/storage_paths.ts";
import type { Config } from "../server/config.ts";
import { placesOf } from "../server/storage_places.ts";
import { openStorage } from "../storage/engines/open_storage.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { type Context, fromUser, openOutput, requireContentOwner, withStorage } from "./context.ts";
import { interruptionSignal } from "./interruption.ts";
import { print, printBytes, printError, reportWait } from "./print.ts";
import { showLongProgress } from "./progress.ts";
import { Refusals } from "./refusals.ts";

interface Options {
  readonly dryRun?: boolean;
  readonly deriveTokens?: boolean;
  readonly rejects?: string;
  readonly json?: true;
}

export function importCommand(context: Context): Command {
  return new Command("import")
    .description(
      "Publish what a file lists: one JSON object per line, as printed by `media export`, or CSV" +
        " whose first line has the names of the members.",
    )
    .argument("<file>", "the file to read, or - for standard input")
    .option("--dry-run", "say what would be done, without doing it")
    .option(
      "--derive-tokens",
      "derive each token that is empty from the content or the URL, instead of refusing its line;" +
        " state this each time that the file is imported",
    )
    .option(
      "--rejects <file>",
      "write refused lines, unchanged, after the first line of CSV, to this file, or to standard" +
        " output if it is -",
    )
    .option("--json", "print one JSON object for each refused line, and the counts at the end")
    .action(async (path: string, options: Options, command: Command) => {
      const { dryRun: isDryRun = false, deriveTokens: derivesTokens = false, rejects, json } =
        options;
      const isOutputTaken = rejects === STANDARD_OUTPUT;
      if (isOutputTaken && json) {
        command.error("error: option '--rejects -' cannot be used with option '--json'");
      }
      const config = context.settings();
      if (!isDryRun) await requireContentOwner(config);
      const signal = interruptionSignal();
      const storagePaths = storagePathsOf(config);
      const resolve = async (path: string) => {
        if (await isWithin(fromUser(path), storagePaths)) throw refusalOfStoragePath(path);
        return fromUser(path);
      };
      const { size, chunks } = await openInput(path, resolve, signal);
      const input = await readInput(chunks);
      const importInto = async (storage: MediaStorage) => {
        const rejected = rejects === undefined
          ? undefined
          : await openRejects(rejects, path, input, storagePaths);
        const refusals = new Refusals(placesOf(config).content);
        const onRefused = async (line: ImportLine, refusal: LineRefusal) => {
          await rejected?.write(line);
          if (!json) return refusals.add(line, refusal);
          const { number, last } = line;
          const lines = last > number ? { line: number, lastLine: last } : { line: number };
          await print(JSON.stringify({ ...lines, outcome: "refused", reason: refusal.reason }));
        };
        let [lines, done] = [0, 0];
        const onProgress = ({ bytes }: ImportLine) => {
          done += bytes.length;
          showLongProgress(`${(++lines).toLocaleString("en")} lines`, size && done / size);
        };
        const outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0, renewed: 0 };
        const onMessage = (text: string) => printError(`media: ${text}`);
        const onFound = () => refusals.find();
        let isLeft = false;
        const onLeft = (text: string) => {
          isLeft = true;
          onMessage(text);
        };
        const callbacks = { onRefused, onFound, onMessage, onLeft, onProgress };
        const asked = { outcomes, isDryRun, derivesTokens, signal, resolve, ...callbacks };
        let isComplete = false;
        try {
          await importLines(storage, input, asked);
          isComplete = true;
        } finally {
          await rejected?.close();
          refusals.end();
          const summary = { ...outcomes, dryRun: isDryRun, complete: isComplete };
          const text = json ? JSON.stringify(summary) : toSummary(outcomes, isDryRun, isComplete);
          if (isOutputTaken) printError(text);
          else await print(text);
        }
        if (outcomes.refused > 0 || isLeft) throw new ExitError(EXIT_STATUS.refused);
      };
      if (isDryRun) return await withStorageUnchanged(config, signal, importInto);
      await withStorage(config, { signal }, importInto);
    });
}

/**
 * Runs a dry run. Where there is no catalogue yet, the lines are checked against an empty one in
 * memory, before the fault is reported.
 */
async function withStorageUnchanged(
  config: Config,
  signal: AbortSignal,
  action: (storage: MediaStorage) => Promise<void>,
): Promise<void> {
  let isStorageOpen = false;
  try {
    await withStorage(config, { mustExist: true, signal }, async (storage) => {
      isStorageOpen = true;
      await action(storage);
    });
  } catch (error) {
    const isCreated = isStorageOpen || !((error as Error).cause instanceof NotCreatedError);
    if (isCreated) throw error;
    const { media, close } = await openStorage({ ...config, database: IN_MEMORY }, { signal });
    try {
      await action(media);
    } finally {
      await close();
      printError(`media: ${messageOf(error as Error)}`);
    }
    throw new ExitError(EXIT_STATUS.refused);
  }
}

function toSummary(
  { added, unchanged, refused, unpublished, renewed }: ImportCounts,
  isDryRun: boolean,
  isComplete: boolean,
): string {
  const count = (lines: number) => lines.toLocaleString("en");
  const tombstones = unpublished === 0 ? "" : ` (${count(unpublished)} of them unpublished)`;
  const objects = renewed === 0 ? "" : ` (${count(renewed)} of them with a new ETag)`;
  return (isDryRun ? "Dry run. Would be added: " : "Added: ") + count(added) + tombstones +
    `; unchanged: ${count(unchanged)}${objects}; refused: ${count(refused)}` +
    (isComplete ? "" : "; stopped before the end: import again to continue");
}

/** Opens the file to import. Its size is known unless it is a pipe. */
async function openInput(
  path: string,
  resolve: ContentOptions["resolve"],
  signal: AbortSignal,
) {
  // Not every system has /dev/stdin.
  if (path === "-") return { size: undefined, chunks: readContent(Deno.stdin.readable, signal) };
  const place = await resolve(path);
  // A pipe opens only when another process opens it to write.
  const opening = readable(path, () => Deno.open(place));
  const file = await waitFor(quoted(path), opening, { signal, onWait: reportWait });
  const { isFile, isDirectory, size } = await file.stat();
  if (!isDirectory) {
    return { size: isFile ? size : undefined, chunks: readContent(file.readable, signal) };
  }
  file.close();
  throw new RefusedError(`${quoted(path)} is a folder, not a file`);
}

/**
 * Opens the file for refused lines, which must not be the input. The first is written after the
 * header, without which it could not be imported again.
 */
async function openRejects(
  path: string,
  input: string,
  { header }: ImportInput,
  storagePaths: readonly string[],
) {
  const isFile = path !== STANDARD_OUTPUT;
  const inputPath = input === "-" ? "/dev/stdin" : fromUser(input);
  if (isFile && await isWithin(fromUser(path), [inputPath])) {
    throw new RefusedError(
      `${quoted(path)} is the file being imported; give another for --rejects`,
    );
  }
  const { write, close } = isFile
    ? await openOutput(path, storagePaths)
    : { write: printBytes, close: () => Promise.resolve() };
  let before = header;
  return {
    async write(line: ImportLine) {
      for (const { bytes } of [...before, line]) {
        const isEnded = bytes.at(-1) === NEWLINE; // the last line may lack a newline
        await write(isEnded ? bytes : new Uint8Array([...bytes, NEWLINE]));
      }
      before = [];
    },
    close,
  };
}
