// What the programs on Node share.

import { retire } from "@media-head/lifecycle";
import type { RecordedMiddleware } from "@media-head/lifecycle/usage";
import { Readable } from "node:stream";
import { policy } from "./policy.ts";
import { broken, options, parts } from "./shared.mts";

export { isOld } from "./policy.ts";

/**
 * The library's middleware. With WAITS, each call has to wait, as the first one to a record has, and
 * one that has the field X-Unrecorded is not taken.
 */
export const retired = process.env["WAITS"] === undefined
  ? retire(policy, options)
  : await waiting();

async function waiting(): Promise<RecordedMiddleware> {
  const folder = new URL(
    "./node_modules/@media-head/lifecycle/lifecycle/serving/",
    import.meta.url,
  );
  const { middlewareOf } = (await import(new URL("retire.js", folder).href)).default;
  const { retirementOf } = (await import(new URL("retirement.js", folder).href)).default;
  const arrive = (fields: Headers) =>
    new Promise((resolve) => setTimeout(resolve, 5, !fields.has("X-Unrecorded")));
  return middlewareOf(retirementOf(policy, options, { arrive, count() {}, leave() {} }));
}

export const stream = () => Readable.from(parts(), { objectMode: false });
export const breaking = () => Readable.from(broken(), { objectMode: false });
