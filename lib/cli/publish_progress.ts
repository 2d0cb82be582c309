/**
 * The progress of `media publish`, in bytes of all files. Each file counts once, even if it is read
 * twice.
 */

import type { ProgressWatcher } from "../publishing/publish.ts";
import { isObject } from "../publishing/publish_object.ts";
import { findSources } from "../publishing/sources.ts";
import type { ContentPlace } from "../storage/content/content_place.ts";
import { Progress } from "./progress.ts";

/** Shows the progress of publishing. */
export class PublishProgress extends Progress {
  /** Bytes of all files; 0 if unknown. */
  #total = 0;
  /** The share that one reading counts for: a file sent to a bucket is read twice. */
  #share = 1;
  /** Bytes of the finished sources. */
  #finished = 0;
  /** Bytes of the source being read, and how many of them are read. */
  #size = 0;
  #read = 0;

  /** Adds up the sizes of the files first. The size of an object is unknown until it is read. */
  static async of(
    sources: readonly string[],
    place: ContentPlace,
    own: readonly string[],
  ): Promise<PublishProgress> {
    const progress = new PublishProgress("bytes");
    if (!progress.isShown || sources.some(isObject)) return progress;
    if (place.kind === "bucket") progress.#share = 0.5;
    for await (const source of findSources(sources, own)) {
      if (typeof source === "string") progress.#total += await sizeOf(source);
    }
    return progress;
  }

  /** Passes the chunks of a source on, and counts them. */
  readonly watch: ProgressWatcher = (chunks, file) => this.#watch(chunks, file);

  /** Records that a source is finished, whatever its outcome. */
  finish(): void {
    this.#finished += this.#size;
    this.#size = this.#read = 0;
  }

  async *#watch(
    ...[chunks, { name, size, step }]: Parameters<ProgressWatcher>
  ): AsyncGenerator<Uint8Array> {
    this.#size = size;
    for await (const chunk of chunks) {
      yield chunk;
      this.#read += chunk.length * this.#share;
      const done = this.#finished + Math.min(this.#read, size);
      this.update({ done, total: this.#total, note: `${step} ${name}` });
    }
  }
}

/** Returns the bytes of a file; 0 for everything else. */
async function sizeOf(source: string): Promise<number> {
  const info = await Deno.stat(source).catch(() => undefined);
  return info?.isFile ? info.size : 0;
}
