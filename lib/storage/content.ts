/**
 * Content: the bytes of published items, each stored once under its digest.
 */

import type { Awaitable } from "../http/awaitable.ts";
import type { ByteRange } from "../http/byte_range.ts";

/** Content on its way in: whole, and not yet in its place. To be disposed of in any case. */
export interface Staged extends AsyncDisposable {
  /** SHA-256, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
}

/**
 * A place for content. Every method throws {@linkcode StorageError} when the place fails. What
 * {@linkcode ContentStore.stage} gives is for the same place alone.
 */
export interface ContentStore {
  /** The name that the place has for itself: empty before it got one, `undefined` without a place. */
  id(): Promise<string | undefined>;

  /** Makes the place, unless it is there, and gives it a name, unless it has one. */
  create(id: string): Promise<void>;

  /** Makes sure that the place is there, and is the one of this name. */
  check(id: string): Promise<void>;

  /** Makes sure that content is there with the length, in bytes, that it was published with. */
  requireContent(digest: string, length: number): Awaitable<void>;

  /** Opens content, or a range of it. It is read no faster than it is consumed. */
  open(
    digest: string,
    length: number,
    range?: ByteRange,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;

  /**
   * Takes content in while hashing it, without giving it its place yet.
   *
   * @param source Read once.
   */
  stage(source: AsyncIterable<Uint8Array>): Promise<Staged>;

  /**
   * Runs a change of what uses some content, as the only one at work in this place. Should the
   * process be killed in the midst of it, the next change puts right what it left.
   *
   * @param digest The content concerned.
   * @param isUsed Whether any published item uses the content of a digest, by now.
   * @param change Commits to the catalogue.
   * @param staged Content to put in its place before that.
   */
  change<T>(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
    change: () => Promise<T>,
    staged?: Staged,
  ): Promise<T>;
}
