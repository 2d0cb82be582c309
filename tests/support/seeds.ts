/**
 * How many random worlds the tests try, each from a seed: by `deno task test:all` as many as
 * `deno.json` says, fewer by `deno task test`, and a few by bare `deno test`, which may not read
 * variables.
 */

import { missingOf } from "./permissions.ts";

const isBare = missingOf(["environment"]) !== "";
const seeds = isBare ? 5 : Number(Deno.env.get("SEEDS") ?? 50);

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

export const SEEDS = upTo(seeds);

/** For worlds that take half a second each. */
export const FEWER_SEEDS = upTo(Math.max(isBare ? 2 : 20, seeds / 5));

/** For worlds on real programs. */
export const FEWEST_SEEDS = upTo(Math.max(2, seeds / 100));
