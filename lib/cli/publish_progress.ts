/**
 * The progress of publishing, in bytes of all sources. Each source counts once, even if it is read
 * twice.
 */

import { isPublicUrl } from "../publishing/location.ts";
import type { ProgressWatcher } from "../publishing/publish.ts";
import { isObject } from "../publishing/publish_object.ts";
import { findSources } from "../publishing/sources.ts";
import type { ContentPlace } from "../storage/content.ts";
import { Progress } from "./progress.ts";

/** What to publish, and where content goes. */
export interface PublishProgressOptions {
  readonly sources: readonly string[];
  readonly content: ContentPlace;
}

/** Shows the progress of publishing on a terminal. Must be disposed of. */
export class PublishProgress implements AsyncDisposable {
  readonly #progress = new Progress({ unit: "bytes", total: 0 });
  readonly #isShown = Deno.stderr.isTerminal();
  /** The share that one reading counts for: a file sent to a bucket is read twice. */
  readonly #share: number;
  readonly #counting: Promise<void>;
  #isOver = false;
  /** Bytes of all sources found so far; counting continues during publishing. */
  #total = 0;
  /** Bytes of the finished sources. */
  #before = 0;
  /** Bytes of the source being read, if any. */
  #size = 0;
  #read = 0;

  constructor({ sources, content }: PublishProgressOptions) {
    this.#share = content.kind === "bucket" ? 0.5 : 1;
    const folder = content.kind === "folder" ? content.path : undefined;
    this.#counting = this.#isShown ? this.#count(sources, folder) : Promise.resolve();
  }

  /** Passes the chunks of a source on, and counts them. */
  readonly watch: ProgressWatcher = (chunks, file) =>
    this.#isShown ? this.#watch(chunks, file) : chunks;

  /** Records that a source is finished, whatever its outcome. */
  async finish(source: string): Promise<void> {
    if (!this.#isShown) return;
    const size = isObject(source) ? this.#size : await sizeOf(source);
    if (isObject(source)) this.#total += size; // not counted before
    this.#before += size;
    this.#size = this.#read = 0;
    this.#show("");
  }

  /** Runs an action that prints, with the bar hidden. */
  aside(action: () => Promise<void>): Promise<void> {
    return this.#progress.aside(action);
  }

  /** Clears the bar. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress[Symbol.dispose]();
    this.#isOver = true;
    await this.#counting;
  }

  async *#watch(
    ...[chunks, { name, size, step }]: Parameters<ProgressWatcher>
  ): AsyncGenerator<Uint8Array> {
    this.#size = size;
    for await (const chunk of chunks) {
      yield chunk;
      this.#read += chunk.length * this.#share;
      this.#show(`${step} ${name}`);
    }
  }

  #show(note: string): void {
    this.#progress.expect(Math.max(this.#total, this.#before + this.#size));
    this.#progress.update(this.#before + Math.min(this.#read, this.#size), note);
  }

  async #count(sources: readonly string[], folder: string | undefined): Promise<void> {
    for await (const { is, source } of findSources(sources, folder)) {
      if (this.#isOver) return;
      if (is === "source") this.#total += await sizeOf(source);
    }
  }
}

/**
 * Returns the bytes of a file; 0 for everything else, whose size is not known before it is read.
 */
async function sizeOf(source: string): Promise<number> {
  if (isPublicUrl(source) || isObject(source)) return 0;
  const info = await Deno.stat(source).catch(() => undefined);
  return info?.isFile ? info.size : 0;
}
