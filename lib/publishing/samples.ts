/**
 * The two samples that make a newcomer's first request answer 200.
 */

import { fileURLToPath } from "node:url";
import { pathsOf, type Route } from "../server/route.ts";
import { parseToken, type Token } from "../storage/token.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import { publishFile, RefusedError } from "./publish.ts";

/** Always the same tokens, so that what the README shows can be tried as it stands. */
const SAMPLES = [
  { file: "sample.mp3", token: parseToken("bb3017d2-c56e-40fb-8495-0316e6321879") as Token },
  { file: "sample.mp4", token: parseToken("6e89c33b-8d74-41c8-9661-a1e31cbff191") as Token },
];

/**
 * Publishes the samples where nothing was ever published.
 *
 * @returns The deprecated paths of the samples that are published, now or since an earlier start.
 */
export async function publishSamples(
  storage: MediaStorage,
  routes: readonly Route[],
): Promise<string[]> {
  if (await storage.isEmpty()) {
    for (const { file, token } of SAMPLES) {
      const url = new URL(`./samples/${file}`, import.meta.url);
      try {
        await publishFile(storage, fileURLToPath(url), { token, language: "en-GB" });
      } catch (error) {
        // Not part of this installation, or published by another process by now.
        if (!(error instanceof RefusedError)) throw error;
      }
    }
  }
  const paths: string[] = [];
  for (const { token } of SAMPLES) {
    const result = await storage.lookUp(token);
    if (result.state === "published") paths.push(...pathsOf(routes, result.item).slice(1));
  }
  return paths;
}
