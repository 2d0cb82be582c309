/** A content store in memory, which needs no permissions. */

import { SerialQueue } from "../../lib/async/serial_queue.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { ByteRange } from "../../lib/http/byte_range.ts";
import type { Catalogue } from "../../lib/storage/catalogue/catalogue.ts";
import type {
  Comparison,
  Content,
  PlainStore,
  Source,
} from "../../lib/storage/content/content_store.ts";
import type { ContentReference } from "../../lib/storage/item.ts";

/** Content that lasts as long as its object. */
export class MemoryContent implements PlainStore {
  readonly kind = "folder";
  /** By digest. */
  readonly bytes = new Map<string, Uint8Array<ArrayBuffer>>();
  readonly #catalogue: Pick<Catalogue, "uses">;
  readonly #queue = new SerialQueue();

  /** @param catalogue Knows which content is used. */
  constructor(catalogue: Pick<Catalogue, "uses">) {
    this.#catalogue = catalogue;
  }

  id(): Promise<string> {
    return Promise.resolve("memory");
  }

  async create(): Promise<void> {}

  async check(): Promise<void> {}

  compare({ digest, length }: ContentReference): Promise<Comparison> {
    const actual = this.bytes.get(digest)?.length;
    const fault: Comparison = actual === undefined
      ? { state: "missing", reason: `content ${digest} is missing` }
      : {
        state: "different",
        reason: `content ${digest} has ${actual} bytes instead of ${length}`,
      };
    return Promise.resolve(actual === length ? { state: "same" } : fault);
  }

  async *list(): AsyncGenerator<string> {
    yield* await Promise.resolve([...this.bytes.keys()].sort());
  }

  async open(content: ContentReference, range?: ByteRange): Promise<Uint8Array<ArrayBuffer>> {
    const comparison = await this.compare(content);
    if (comparison.state !== "same") throw new StorageError("memory", comparison.reason);
    const { digest, length } = content;
    const { first, last } = range ?? { first: 0, last: length - 1 };
    return (this.bytes.get(digest) as Uint8Array<ArrayBuffer>).slice(first, last + 1);
  }

  withoutRemovals<T>(action: () => Promise<T>): Promise<T> {
    return this.#queue.run(action);
  }

  async change<T>({ digest }: Content, commit: () => Promise<T>, source?: Source): Promise<T> {
    const chunks = source &&
      await Array.fromAsync(source.read("copying"), (chunk) => new Uint8Array(chunk));
    return await this.#queue.run(async () => {
      if (chunks !== undefined) this.bytes.set(digest, await new Blob(chunks).bytes());
      try {
        return await commit();
      } finally {
        if (!await this.#catalogue.uses(digest)) this.bytes.delete(digest);
      }
    });
  }

  deleteLeftovers(): Promise<[]> {
    return Promise.resolve([]);
  }

  async close(): Promise<void> {}
}
