/** The paths of this project's files, whatever the working directory. */

import { fileURLToPath } from "node:url";

/** Resolves a path relative to the project's root. */
export function fromRoot(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** The two samples, also used as small real media in tests. */
export const SAMPLE_MP3 = fromRoot("lib/publishing/samples/sample.mp3");
export const SAMPLE_MP4 = fromRoot("lib/publishing/samples/sample.mp4");
