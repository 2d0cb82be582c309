/** The two samples that let a newcomer's first request succeed. */

import { fileURLToPath } from "node:url";
import { RefusedError } from "../errors/refused_error.ts";
import { itemPaths, type Route } from "../server/route.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { tokenOf } from "../storage/token.ts";
import { publishFile } from "./publish.ts";

/** Fixed tokens, so that the README's commands can be copied. */
const SAMPLES = [
  { file: "sample.mp3", token: tokenOf("bb3017d2-c56e-40fb-8495-0316e6321879") },
  { file: "sample.mp4", token: tokenOf("6e89c33b-8d74-41c8-9661-a1e31cbff191") },
];

/**
 * Publishes the samples, unless anything was ever published.
 *
 * @returns The deprecated paths of the samples that are published.
 */
export async function publishSamples(
  storage: MediaStorage,
  routes: readonly Route[],
): Promise<string[]> {
  if (await storage.catalogue.isEmpty()) {
    for (const { file, token } of SAMPLES) {
      const url = new URL(`./samples/${file}`, import.meta.url);
      try {
        await publishFile(storage, fileURLToPath(url), { token, language: "en-GB" });
      } catch (error) {
        // The file is not installed, or another process has published it.
        if (!(error instanceof RefusedError)) throw error;
      }
    }
  }
  const paths: string[] = [];
  for (const { token } of SAMPLES) {
    const result = await storage.catalogue.find(token);
    if (result.state === "published") paths.push(...itemPaths(routes, result.item).slice(1));
  }
  return paths;
}
