/**
 * Where the files of this project are, wherever the tests are started.
 */

import { fileURLToPath } from "node:url";

/** The path of a file of this project, given relative to its root. */
export function fromRoot(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** The two samples, which serve as small real media in the tests as well. */
export const SAMPLE_MP3 = fromRoot("lib/publishing/samples/sample.mp3");
export const SAMPLE_MP4 = fromRoot("lib/publishing/samples/sample.mp4");
