/**
 * The driver for PostgreSQL, as the package has it. With a literal `require` in a `try`, bundlers
 * include `pg` where it is installed, and build without it where it is not.
 */

// @ts-types="npm:@types/pg@8.20.0"
import type { Client, Pool } from "pg";
import { RefusedError } from "../../errors/refused_error.ts";

// @ts-types="npm:@types/pg@8.20.0"
export type { Client, Pool, PoolClient } from "pg";

/** The classes of connections, and of pools of them. */
export interface Driver {
  readonly Client: typeof Client;
  readonly Pool: typeof Pool;
}

declare const require: (name: "pg") => Driver;

/**
 * @throws {RefusedError} If the package `pg` cannot be loaded.
 */
export function loadDriver(): Driver {
  try {
    return require("pg");
  } catch (error) {
    const [reason] = (error as Error).message.split("\n"); // without the files that require it
    throw new RefusedError(
      `PostgreSQL needs the package pg, which cannot be loaded (${reason}): run npm install pg, ` +
        "then bundle again if you use a bundler",
    );
  }
}
