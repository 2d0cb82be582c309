/** How to open a database. */

import type { Patience } from "../async/abort.ts";

/** The signal ends a wait for a lock, also after opening. */
export interface OpenOptions extends Patience {
  /** Whether to refuse a database without the tables, rather than create them. */
  readonly mustExist?: boolean;
  /** Where the database was named, for messages: `DATABASE_URL` by default. */
  readonly setting?: string;
  /** Called with the name of what was created. */
  readonly onCreate?: (name: string) => void;
}

/** Why a database that must exist is refused. */
export const NOT_CREATED_YET = "It does not exist yet; start the server to create it";

export function settingOf({ setting = "DATABASE_URL" }: OpenOptions): string {
  return setting;
}
