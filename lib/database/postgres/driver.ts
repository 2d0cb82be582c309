/** The driver for PostgreSQL. The package has `driver.cts` in place of this file. */

// @ts-types="npm:@types/pg@8.20.0"
import { Client, Pool } from "pg";

// @ts-types="npm:@types/pg@8.20.0"
export type { Client, Pool, PoolClient } from "pg";

/** The classes of connections, and of pools of them. */
export interface Driver {
  readonly Client: typeof Client;
  readonly Pool: typeof Pool;
}

export function loadDriver(): Driver {
  return { Client, Pool };
}
