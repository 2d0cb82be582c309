/**
 * Content in memory.
 */

import type { ByteRange } from "../../http/byte_range.ts";
import type { Comparison, ContentReference, ContentStore, Source, Staged } from "../content.ts";
import { StorageError } from "../storage.ts";
import { SerialQueue } from "../serial_queue.ts";

/** Staged content. */
interface StagedBytes extends Staged {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Content that lasts as long as its object. */
export class MemoryContent implements ContentStore {
  /** By digest. */
  readonly bytes = new Map<string, Uint8Array<ArrayBuffer>>();
  readonly #queue = new SerialQueue();

  /** @inheritdoc */
  id(): Promise<string> {
    return Promise.resolve("memory");
  }

  /** @inheritdoc */
  async create(): Promise<void> {}

  /** @inheritdoc */
  async check(): Promise<void> {}

  /** @inheritdoc */
  requireContent(content: ContentReference): void {
    const comparison = this.#compare(content);
    if (comparison.state !== "same") throw new StorageError("memory", comparison.reason);
  }

  /** @inheritdoc */
  compare(content: ContentReference): Promise<Comparison> {
    return Promise.resolve(this.#compare(content));
  }

  /** @inheritdoc */
  async *list(): AsyncGenerator<string> {
    yield* await Promise.resolve([...this.bytes.keys()].sort());
  }

  /** @inheritdoc */
  isUnused(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
  ): Promise<boolean> {
    return this.#queue.run(async () => this.bytes.has(digest) && !await isUsed(digest));
  }

  /** @inheritdoc */
  open(content: ContentReference, range?: ByteRange): Uint8Array<ArrayBuffer> {
    this.requireContent(content);
    const { digest, length } = content;
    const { first, last } = range ?? { first: 0, last: length - 1 };
    return (this.bytes.get(digest) as Uint8Array<ArrayBuffer>).slice(first, last + 1);
  }

  /** @inheritdoc */
  async stage(source: Source): Promise<StagedBytes> {
    const chunks = await Array.fromAsync(source.read("copying"), (chunk) => new Uint8Array(chunk));
    const bytes = await new Blob(chunks).bytes();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
    return { digest, length: bytes.length, bytes, async [Symbol.asyncDispose]() {} };
  }

  /** @inheritdoc */
  hold<T>(_digests: readonly string[], action: () => Promise<T>): Promise<T> {
    return this.#queue.run(action);
  }

  /** @inheritdoc */
  faultsIn(contents: readonly ContentReference[]): Promise<(StorageError | undefined)[]> {
    const look = async (content: ContentReference) => {
      if (content.location !== undefined) return new StorageError("memory", "has no objects");
      await this.requireContent(content);
    };
    return Promise.all(
      contents.map((content) => look(content).catch((fault: StorageError) => fault)),
    );
  }

  /** @inheritdoc */
  change<T>(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
    change: () => Promise<T>,
    staged?: StagedBytes,
  ): Promise<T> {
    return this.#queue.run(async () => {
      if (staged !== undefined) this.bytes.set(digest, staged.bytes);
      try {
        return await change();
      } finally {
        if (!await isUsed(digest)) this.bytes.delete(digest);
      }
    });
  }

  #compare({ digest, length }: ContentReference): Comparison {
    const actual = this.bytes.get(digest)?.length;
    if (actual === length) return { state: "same" };
    if (actual === undefined) return { state: "missing", reason: `content ${digest} is missing` };
    const reason = `content ${digest} has ${actual} bytes instead of ${length}`;
    return { state: "different", reason };
  }
}
