/**
 * What is at a public URL now, compared with what was there when it was published.
 */

import type { Comparison } from "../storage/content.ts";
import type { LinkedItem } from "../storage/storage.ts";
import { quoted } from "./printable.ts";
import { RefusedError } from "./publish.ts";
import { type PublishUrlOptions, sendRequest } from "./publish_url.ts";

/** Statuses of a URL that is gone. */
const GONE = [404, 410];

/** Statuses, besides 5xx, that say nothing of the content. */
const TEMPORARY = [408, 425, 429];

/**
 * Asks the URL of an item as `publishUrl()` does: by a HEAD, and by a GET of the beginning where that
 * says other than what is on record, for that may come from a GET.
 *
 * @throws {RefusedError} When there is no answer that tells.
 * @throws What aborted the signal.
 */
export async function compareUrl(
  item: LinkedItem,
  options: Pick<PublishUrlOptions, "signal" | "timeout">,
): Promise<Comparison> {
  const { location } = item;
  const head = await sendRequest("HEAD", location, options);
  if (head.isSuccess && differencesOf(item, head.stated).length === 0) return { state: "same" };

  const { status, isSuccess, stated, beginning } = await sendRequest("GET", location, options);
  const answer = `${quoted(location)} answers GET with ${status}`;
  if (GONE.includes(status)) return { state: "missing", reason: answer };
  if (status >= 500 || TEMPORARY.includes(status)) throw new RefusedError(answer);
  if (!isSuccess) return { state: "different", reason: answer };
  if (beginning.length === 0) {
    return { state: "different", reason: `${quoted(location)} is empty` };
  }
  const differences = differencesOf(item, stated);
  if (differences.length === 0) return { state: "same" };
  return { state: "different", reason: `${quoted(location)} states ${differences.join(", ")}` };
}

/** What is stated otherwise than is on record. What is not on record cannot differ. */
function differencesOf(item: LinkedItem, stated: Partial<LinkedItem>): string[] {
  const names = ["type", "length", "validator"] as const;
  return names.filter((name) => item[name] !== undefined && item[name] !== stated[name])
    .map((name) => `${name} ${stated[name] ?? "unknown"} instead of ${item[name]}`);
}
