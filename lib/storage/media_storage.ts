/**
 * Storage of two halves: a catalogue, and the content that its items have. Reading for the server,
 * and writing for the command line.
 */

import type { Body } from "../http/answer.ts";
import { andThen, attempt, type Awaitable } from "../http/awaitable.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { Catalogue, CatalogueRecord } from "./catalogue.ts";
import type {
  Comparison,
  ContentReference,
  ContentStore,
  ExistingContent,
  Source,
  Staged,
} from "./content.ts";
import { fulfilledWithin } from "./deadline.ts";
import type { Engine } from "./engine.ts";
import type { Ledger } from "./ledger.ts";
import { sampleOf } from "./sample.ts";
import {
  type CatalogueEntry,
  type LinkedItem,
  type LookupResult,
  ObjectError,
  type PublishedItem,
  type Storage,
  StorageError,
  UnpublishedError,
} from "./storage.ts";
import type { Token } from "./token.ts";
import { unusedIn } from "./unused.ts";

/** Milliseconds that storage may take to show that it answers. */
const MAX_CHECK = 5_000;

/** What publishing needs to know of an item besides its content. */
export type ItemMetadata = Omit<PublishedItem, keyof ContentReference>;

/** What became of entries that were to be added; of all others, the token was taken. */
export interface Added {
  readonly added: ReadonlySet<Token>;
  readonly faults: ReadonlyMap<Token, StorageError>;
}

/** Both halves of storage as one. */
export class MediaStorage implements Storage {
  readonly #engine: Engine;
  readonly #catalogue: Catalogue;
  readonly #content: ContentStore;
  #contentId: string | undefined;

  /** @param engine Closed with this. */
  constructor(engine: Engine, content: ContentStore) {
    this.#engine = engine;
    this.#catalogue = engine.catalogue;
    this.#content = content;
  }

  /** Who called the deprecated routes. */
  get ledger(): Ledger {
    return this.#engine.ledger;
  }

  /** @inheritdoc */
  get versionTtl(): number {
    return this.#catalogue.versionTtl;
  }

  /** @inheritdoc */
  version(): Awaitable<number> {
    return this.#catalogue.version();
  }

  /** @inheritdoc */
  find(token: Token): Awaitable<LookupResult> {
    return andThen(this.#catalogue.find(token), (result) => {
      if (result.state !== "published") return result;
      return attempt<LookupResult>(
        () => andThen(this.#content.requireContent(result.item), () => result),
        async (error) => {
          const now = await this.#catalogue.find(token);
          if (now.state !== "published") return now; // unpublished in the meantime
          throw error;
        },
      );
    });
  }

  /** @inheritdoc */
  open(item: PublishedItem, range?: ByteRange): Awaitable<Body> {
    return attempt(() => this.#content.open(item, range), async (error) => {
      const { state } = await this.#catalogue.find(item.token);
      if (state !== "published") throw new UnpublishedError("The item was unpublished");
      throw error;
    });
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    const halves = Promise.all([
      this.#catalogue.check(),
      this.#contentId === undefined ? undefined : this.#content.check(this.#contentId),
    ]);
    if (await fulfilledWithin(MAX_CHECK, halves)) return;
    throw new StorageError("storage", `no answer within ${MAX_CHECK / 1000} s`);
  }

  /**
   * Makes sure that content is where the catalogue's items have theirs, and makes the place where
   * none has any.
   *
   * @throws {StorageError} When it is elsewhere.
   */
  async prepare(): Promise<void> {
    const found = await this.#content.id();
    const id = await this.#catalogue.claimContent(found || crypto.randomUUID());
    if (found !== id) {
      if (found !== undefined || !await this.#catalogue.uses()) await this.#content.create(id);
      await this.#content.check(id);
    }
    this.#contentId = id;
  }

  /** @inheritdoc */
  async close(): Promise<void> {
    await this.#engine.close();
    await this.#content.close?.();
  }

  /** Bytes of the longest content that can be taken in. */
  get maxLength(): number {
    return this.#content.maxLength ?? Infinity;
  }

  /** Takes content in without publishing it; see {@linkcode ContentStore.stage}. */
  async stage(source: Source): Promise<Staged> {
    await this.prepare();
    return await this.#content.stage(source);
  }

  /**
   * Publishes staged content, whole or not at all.
   *
   * @throws {TokenTakenError} When the token was ever used.
   * @throws {StorageError} When the catalogue fails.
   */
  async publish(metadata: ItemMetadata, staged: Staged): Promise<PublishedItem> {
    const { digest, length } = staged;
    const item: PublishedItem = { ...metadata, digest, length };
    await this.#change(digest, () => this.#catalogue.add(item), staged);
    return item;
  }

  /**
   * A published item of this name that has this very content, in the same place. One whose content
   * is known to be missing does not count: publishing it again puts the content back.
   */
  async findByContent(content: ContentReference, name: string): Promise<PublishedItem | undefined> {
    const item = await this.#catalogue.findByContent(content, name);
    if (item === undefined) return undefined;
    try {
      await this.#content.requireContent(item);
      return item;
    } catch (error) {
      if (error instanceof StorageError) return undefined;
      throw error;
    }
  }

  /**
   * Looks at an object that can be published where it is.
   *
   * @param location `s3://bucket/key`
   * @throws {ObjectError} When there is none, or content is not in that bucket.
   */
  async inspect(location: string): Promise<ExistingContent> {
    await this.prepare();
    const object = await this.#content.inspect?.(location);
    if (object !== undefined) return object;
    throw new ObjectError(
      "storage",
      "CONTENT is no bucket, so there is nothing to publish in place",
    );
  }

  /**
   * Publishes an object where it is. It is never removed from there.
   *
   * @throws {TokenTakenError} When the token was ever used.
   * @throws {StorageError} When the catalogue fails.
   */
  async publishInPlace(
    metadata: ItemMetadata,
    object: Required<ContentReference>,
  ): Promise<PublishedItem> {
    const item: PublishedItem = { ...metadata, ...object };
    await this.#catalogue.add(item);
    return item;
  }

  /**
   * Publishes an item whose content is at a public URL.
   *
   * @throws {TokenTakenError} When the token was ever used.
   * @throws {StorageError} When the catalogue fails.
   */
  async publishLink(item: LinkedItem): Promise<void> {
    await this.#catalogue.add(item);
  }

  /**
   * Adds entries whose content is in its place already, or elsewhere, in one transaction. Those whose
   * content is not there, or whose token was ever used, are left out.
   *
   * @param records One of each token at most.
   * @returns The tokens of those that were added, and what is wrong with the content of others.
   * @throws {StorageError} When the catalogue or the place of the content fails.
   */
  async addAll(records: readonly CatalogueRecord[]): Promise<Added> {
    const add = async () => {
      const faults = await this.contentFaults(records);
      const sound = records.filter(([token]) => !faults.has(token));
      return { added: await this.#catalogue.addAll(sound), faults };
    };
    const items = itemsOf(records);
    // A place that is made for content that is not there yet could not be replaced by the right one.
    if (items.length === 0 || await this.#content.id() === undefined) return await add();
    await this.prepare();
    const copied = items.filter(({ location }) => location === undefined);
    if (copied.length === 0) return await add();
    return await this.#content.hold(copied.map(({ digest }) => digest), add);
  }

  /** What is wrong with the content of entries, by their tokens. */
  async contentFaults(
    records: readonly CatalogueRecord[],
  ): Promise<ReadonlyMap<Token, StorageError>> {
    const items = itemsOf(records);
    const faults = await this.#content.faultsIn(items);
    return new Map(items.flatMap(({ token }, at) => {
      const fault = faults[at];
      return fault === undefined ? [] : [[token, fault]];
    }));
  }

  /**
   * Unpublishes an item: leaves a tombstone, and removes the content when no other item uses it.
   *
   * @param at Milliseconds since the epoch.
   * @returns Whether it was published until now.
   * @throws {StorageError} When the catalogue fails.
   */
  async unpublish(token: Token, at: number): Promise<boolean> {
    const result = await this.#catalogue.find(token);
    const unpublish = () => this.#catalogue.unpublish(token, at);
    if (result.state === "linked") return await unpublish();
    if (result.state !== "published") return false;
    const { digest, location } = result.item;
    return location === undefined ? await this.#change(digest, unpublish) : await unpublish();
  }

  /** What the catalogue says of a token, whether or not the content is whole. */
  lookUp(token: Token): Awaitable<LookupResult> {
    return this.#catalogue.find(token);
  }

  /** What the catalogue says of many tokens; those that were never used are left out. */
  lookUpAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>> {
    return this.#catalogue.findAll(tokens);
  }

  /** Everything ever published, in the order of tokens, read incrementally. */
  list(): AsyncIterable<[Token, CatalogueEntry]> {
    return this.#catalogue.list();
  }

  /** So many published items at random; see {@linkcode sampleOf}. */
  sample(size: number): AsyncIterable<[Token, CatalogueEntry]> {
    return sampleOf(this.#catalogue, size);
  }

  /** Looks at what storage has in the place of an item's content now, without reading it. */
  compare(item: PublishedItem): Promise<Comparison> {
    return this.#content.compare(item);
  }

  /** Digests of content that probably no item uses; see {@linkcode unusedIn}. */
  listUnused(): AsyncIterable<string> {
    return unusedIn(this.#content, this.#catalogue);
  }

  /** Whether content is here that no item uses and that nobody is publishing. */
  isUnused(digest: string): Promise<boolean> {
    return this.#content.isUnused(digest, (digest) => this.#catalogue.uses(digest));
  }

  /** Whether nothing was ever published. */
  isEmpty(): Promise<boolean> {
    return this.#catalogue.isEmpty();
  }

  #change<T>(digest: string, change: () => Promise<T>, staged?: Staged): Promise<T> {
    return this.#content.change(digest, (digest) => this.#catalogue.uses(digest), change, staged);
  }
}

/** Those that have content of ours. */
function itemsOf(records: readonly CatalogueRecord[]): PublishedItem[] {
  return records.flatMap(([, entry]) => entry.state === "published" ? [entry.item] : []);
}
