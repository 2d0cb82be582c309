/** Compares the content at a public URL with what the catalogue has. */

import type { Patience } from "../async/abort.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { quoted } from "../input/printable.ts";
import type { Comparison } from "../storage/content/content_store.ts";
import type { LinkedItem } from "../storage/item.ts";
import { sendRequest } from "./publish_url.ts";

/** Statuses that mean the URL is gone. */
const GONE = [404, 410];

/** Temporary statuses besides 5xx. They say nothing about the content. */
const TEMPORARY = [408, 425, 429];

/**
 * Requests the URL of an item as `publishUrl()` does, by HEAD and by GET. The facts in the catalogue
 * may come from either.
 *
 * @throws {RefusedError} When there is no conclusive answer.
 */
export async function compareUrl(item: LinkedItem, options: Patience): Promise<Comparison> {
  const { location } = item;
  const head = await sendRequest("HEAD", location, options);
  const { status, isSuccess, stated, beginning } = await sendRequest("GET", location, options);
  const answer = `${quoted(location)} answers GET with ${status}`;
  if (GONE.includes(status)) return { state: "missing", reason: answer };
  if (status >= 500 || TEMPORARY.includes(status)) throw new RefusedError(answer);
  if (!isSuccess) return { state: "different", reason: answer };
  if (beginning.length === 0) {
    return { state: "different", reason: `${quoted(location)} is empty` };
  }
  if (head.isSuccess && differencesOf(item, head.stated).length === 0) return { state: "same" };
  const differences = differencesOf(item, stated);
  if (differences.length === 0) return { state: "same" };
  return { state: "different", reason: `${quoted(location)} states ${differences.join(", ")}` };
}

/** Lists the differences from the catalogue. A fact that it lacks cannot differ. */
function differencesOf(item: LinkedItem, stated: Partial<LinkedItem>): string[] {
  const names = ["type", "length", "validator"] as const;
  return names.filter((name) => item[name] !== undefined && item[name] !== stated[name])
    .map((name) => `${name} ${stated[name] ?? "unknown"} instead of ${item[name]}`);
}
