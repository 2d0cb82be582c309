/**
 * The PostgreSQL engine, loaded on demand: its package reads the environment when it is loaded,
 * which bare `deno test` does not permit.
 */

import type * as engine from "../../lib/storage/postgres/engine.ts";

/** `openEngine()` of lib/storage/postgres/engine.ts. */
export const openEngine: typeof engine.openEngine = async (...args) =>
  await (await import("../../lib/storage/postgres/engine.ts")).openEngine(...args);
