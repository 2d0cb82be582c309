/**
 * How far publishing is, in bytes of all sources, each of which counts once however often it is
 * read.
 */

import { isPublicUrl } from "../publishing/location.ts";
import type { ProgressWatcher } from "../publishing/publish.ts";
import { isObject } from "../publishing/publish_object.ts";
import { findSources } from "../publishing/sources.ts";
import type { ContentPlace } from "../storage/content.ts";
import { Progress } from "./progress.ts";

/** What will be published. */
export interface PublishProgressOptions {
  readonly sources: readonly string[];
  readonly content: ContentPlace;
}

/** Shows on a terminal how far publishing is. To be disposed of in any case. */
export class PublishProgress implements AsyncDisposable {
  readonly #progress = new Progress({ unit: "bytes", total: 0 });
  readonly #isShown = Deno.stderr.isTerminal();
  /** What one reading counts: what goes to a bucket is read twice. */
  readonly #share: number;
  readonly #counting: Promise<void>;
  #isOver = false;
  /** Bytes, of all that was found by now: files are counted while others are published already. */
  #total = 0;
  /** Bytes of the sources that are done with. */
  #before = 0;
  /** Bytes of the source that is being read, if any is. */
  #size = 0;
  #read = 0;

  constructor({ sources, content }: PublishProgressOptions) {
    this.#share = content.kind === "bucket" ? 0.5 : 1;
    const folder = content.kind === "folder" ? content.path : undefined;
    this.#counting = this.#isShown ? this.#count(sources, folder) : Promise.resolve();
  }

  /** Passes on what is read of a source. */
  readonly watch: ProgressWatcher = (chunks, file) =>
    this.#isShown ? this.#watch(chunks, file) : chunks;

  /** Tells that a source is done with, whatever became of it. */
  async finish(source: string): Promise<void> {
    if (!this.#isShown) return;
    const size = isObject(source) ? this.#size : await sizeOf(source);
    if (isObject(source)) this.#total += size; // it was not counted
    this.#before += size;
    this.#size = this.#read = 0;
    this.#show("");
  }

  /** Runs an action that prints, with the bar out of its way. */
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

/** Bytes of a file; of nothing else is that known before it is read. */
async function sizeOf(source: string): Promise<number> {
  if (isPublicUrl(source) || isObject(source)) return 0;
  const info = await Deno.stat(source).catch(() => undefined);
  return info?.isFile ? info.size : 0;
}
