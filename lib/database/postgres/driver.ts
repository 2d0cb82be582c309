/** The driver for PostgreSQL. The package has `driver.cts` in place of this file. */

// @ts-types="npm:@types/pg@8.20.0"
import { Pool } from "pg";

// @ts-types="npm:@types/pg@8.20.0"
export type { Pool, PoolClient } from "pg";

/** Returns the class of connection pools. */
export function loadPool(): typeof Pool {
  return Pool;
}
