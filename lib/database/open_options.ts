/** The options for opening a database. */

import type { Patience } from "../async/abort.ts";

/** The signal ends every wait for a lock, even after opening. */
export interface OpenOptions extends Patience {
  /** Whether to refuse a database without the tables, rather than create the tables. */
  readonly mustExist?: boolean;
  /** Whether to open an existing SQLite file for reading only, so that nothing about it changes. */
  readonly isReadOnly?: boolean;
  /** The setting that names the database, for messages. Default: `DATABASE_URL`. */
  readonly setting?: string;
  /** Called with the name of the database, once it is created. */
  readonly onCreate?: (name: string) => void;
  /** Called with what may be wrong with the database's URL. */
  readonly onWarn?: (message: string) => void;
}

export function settingOf({ setting = "DATABASE_URL" }: OpenOptions): string {
  return setting;
}
