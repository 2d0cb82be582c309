/** What commands are given, and what they share: opening storage, and reading arguments. */

import { resolve } from "node:path";
import type { OpenOptions } from "../database/open_options.ts";
import type { DatabasePlace } from "../database/place.ts";
import { DENO_RUNTIME } from "../database/sqlite/deno_runtime.ts";
import { argument } from "../input/arguments.ts";
import { type Draft, openDraft } from "../input/draft.ts";
import { isWithin, refusalOfStoragePath } from "../publishing/storage_paths.ts";
import type { Config } from "../server/config.ts";
import type { Handler, HandlerOptions } from "../server/handler.ts";
import type { Route } from "../server/route.ts";
import { requireOwner } from "../storage/owner.ts";
import { openStorage } from "../storage/engines/open_storage.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { parseToken } from "../storage/token.ts";
import { type LedgerOptions, ledgerPlaceOf, type OpenLedger } from "../usage/record/open_ledger.ts";
import { printError, reportWait } from "./print.ts";

/** The parts of the server that commands use. */
export interface Program {
  readonly routes: readonly Route[];
  readonly createHandler: (options: HandlerOptions) => Handler;
}

export interface Context extends Program {
  /**
   * Reads the settings. Commands call this only when they need settings, so help works without any.
   */
  readonly settings: () => Config;
}

/**
 * Refuses to change a folder with content as root if it is another user's, or others may replace it.
 * The commands that may change it call this before they open storage, because that can create a
 * catalogue.
 *
 * @throws {StorageError} If it is.
 */
export async function requireContentOwner({ content }: Config): Promise<void> {
  if (content.kind === "folder") await requireOwner(content.path, "CONTENT");
}

/** Opens storage that must already exist, to read it, as from a backup or a read-only mount. */
export const READING = { mustExist: true, isReadOnly: true };

/**
 * Runs an action on the configured storage, and closes it afterwards, even on errors. Creates no
 * catalogue at the default place: whoever runs a command without the settings of the server would
 * publish into it, or unpublish from it, unseen.
 */
export async function withStorage<T>(
  config: Config,
  options: Pick<OpenOptions, "mustExist" | "isReadOnly" | "signal">,
  action: (storage: MediaStorage) => Promise<T>,
): Promise<T> {
  const { media, close } = await openStorage(config, {
    ...options,
    mustExist: options.mustExist === true || !config.isDatabaseNamed,
    onCreate: (what) => printError(`media: created ${what}`),
    onWarn: (message) => printError(`media: warning: ${message}`),
    onWait: reportWait,
  });
  try {
    return await action(media);
  } finally {
    await close();
  }
}

/**
 * Opens the ledger of a catalogue. Root keeps out of the files of other users.
 *
 * @param open How to open it.
 * @param setting The setting or option that names the catalogue.
 */
export async function openLedgerOf(
  catalogue: DatabasePlace,
  open: (place: DatabasePlace, options: LedgerOptions) => Promise<OpenLedger>,
  setting: "DATABASE_URL" | "--also" = "DATABASE_URL",
): Promise<OpenLedger> {
  for (const file of catalogue.files) await requireOwner(file, setting);
  return await open(ledgerPlaceOf(catalogue), {
    setting,
    runtime: () => DENO_RUNTIME,
    onWarn: (message) => printError(`media: warning: ${message}`),
    onWait: reportWait,
  });
}

/**
 * Resolves a path given as an argument against the user's working directory. `deno task` runs in
 * the project's folder, and sets INIT_CWD to the directory it was called from.
 */
export function fromUser(path: string): string {
  const folder = Deno.cwd();
  const isTask = resolve(import.meta.dirname ?? "", "../..") === folder;
  return resolve(isTask && Deno.env.get("INIT_CWD") || folder, path);
}

/**
 * Opens a file to write: see {@linkcode openDraft}.
 *
 * @param storagePaths The files and folders of storage, to be refused.
 */
export async function openOutput(name: string, storagePaths: readonly string[]): Promise<Draft> {
  const place = fromUser(name);
  if (await isWithin(place, storagePaths)) throw refusalOfStoragePath(name);
  return await openDraft(name, place);
}

export const tokenArgument = argument("a version 4 UUID", parseToken);
