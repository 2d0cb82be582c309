/** The options for opening a database. */

import type { Patience } from "../async/abort.ts";

/** The signal ends every wait for a lock, even after opening. */
export interface OpenOptions extends Patience {
  /** Whether to refuse a database without the tables, rather than create the tables. */
  readonly mustExist?: boolean;
  /** The setting that names the database, for messages. Default: `DATABASE_URL`. */
  readonly setting?: string;
  /** Called with the name of the database, once it is created. */
  readonly onCreate?: (name: string) => void;
  /** Called with what may be wrong with the database's URL. */
  readonly onWarn?: (message: string) => void;
}

/** The cause of the fault of a database that must exist, but does not. */
export class NotCreatedError extends Error {
  override readonly name = "NotCreatedError";

  constructor() {
    super("It does not exist yet; start the server to create it");
  }
}

export function settingOf({ setting = "DATABASE_URL" }: OpenOptions): string {
  return setting;
}
