/**
 * A record of who still calls retired endpoints, in SQLite or PostgreSQL. The command
 * `lifecycle usage` reports on it, and says whether the endpoints can be removed.
 *
 * @module
 */

import { StorageError } from "../errors/storage_error.ts";
import { messageOf } from "../input/printable.ts";
import { openRecord, type Usage } from "./open_record.ts";
import type { UsageOptions } from "./options.ts";

export type { LogEvent } from "../log/log.ts";
export type { Middleware } from "../lifecycle/serving/retire.ts";
export type { Usage } from "./open_record.ts";
export type { RouteOptions, UsageOptions } from "./options.ts";

/**
 * Opens the record of calls for this process, and creates it if needed. Waits for the database for two
 * seconds at most: if it cannot be reached by then, resolves with a `fault`, and registers the process
 * as soon as possible.
 *
 * @param database `sqlite:PATH`, for processes on one machine, or `postgres://…`. PostgreSQL needs
 *   the package `pg`.
 * @throws {TypeError} If an option is not valid.
 * @throws {Error} If the record cannot be used for a reason that waiting does not mend: the URL or the
 *   password is wrong, the package `pg` or Node's SQLite is missing, the path is not there or may not
 *   be written, or the record belongs to another release. The message has the cause.
 */
export async function openUsage(database: string, options: UsageOptions): Promise<Usage> {
  try {
    return (await openRecord(database, "openUsage()", options)).usage;
  } catch (error) {
    // With its cause in its message, which is all that many programs print.
    throw error instanceof StorageError ? new Error(messageOf(error), { cause: error }) : error;
  }
}
