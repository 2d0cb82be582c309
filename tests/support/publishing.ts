/**
 * Parts of lib/publishing/, loaded on demand: the package that detects formats reads the
 * environment when it is loaded, which bare `deno test` does not permit.
 */

import type * as compare_url from "../../lib/publishing/compare_url.ts";
import type * as importing from "../../lib/publishing/import.ts";
import type * as record from "../../lib/publishing/import_record.ts";
import type * as location from "../../lib/publishing/location.ts";
import type * as publish from "../../lib/publishing/publish.ts";
import type * as publish_url from "../../lib/publishing/publish_url.ts";
import type * as samples from "../../lib/publishing/samples.ts";
import type * as verifying from "../../lib/publishing/verify.ts";

/** `publishFile()` of lib/publishing/publish.ts. */
export const publishFile: typeof publish.publishFile = async (...args) =>
  await (await import("../../lib/publishing/publish.ts")).publishFile(...args);

/** `publishSamples()` of lib/publishing/samples.ts. */
export const publishSamples: typeof samples.publishSamples = async (...args) =>
  await (await import("../../lib/publishing/samples.ts")).publishSamples(...args);

/** `publishUrl()` of lib/publishing/publish_url.ts. */
export const publishUrl: typeof publish_url.publishUrl = async (...args) =>
  await (await import("../../lib/publishing/publish_url.ts")).publishUrl(...args);

/** `compareUrl()` of lib/publishing/compare_url.ts. */
export const compareUrl: typeof compare_url.compareUrl = async (...args) =>
  await (await import("../../lib/publishing/compare_url.ts")).compareUrl(...args);

/** `verify()` of lib/publishing/verify.ts. */
export const verify: typeof verifying.verify = async (...args) =>
  await (await import("../../lib/publishing/verify.ts")).verify(...args);

/** lib/publishing/location.ts. */
export async function loadLocation(): Promise<typeof location> {
  return await import("../../lib/publishing/location.ts");
}

/** lib/publishing/import.ts, and the parsing of records. */
export async function loadImport(): Promise<typeof importing & typeof record> {
  return {
    ...await import("../../lib/publishing/import.ts"),
    ...await import("../../lib/publishing/import_record.ts"),
  };
}
