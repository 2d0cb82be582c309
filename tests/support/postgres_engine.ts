/**
 * The PostgreSQL engine, loaded on demand: its package reads the environment when it is loaded,
 * which bare `deno test` does not permit.
 */

import type * as engine from "../../lib/storage/database/postgres/engine.ts";

/** `openEngine()` of lib/storage/database/postgres/engine.ts. */
export const openEngine: typeof engine.openEngine = async (...args) =>
  await (await import("../../lib/storage/database/postgres/engine.ts")).openEngine(...args);
