/**
 * Storage made of a catalogue and a content store: reading for the server, writing for the command
 * line.
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

/** The timeout of a storage check, in milliseconds. */
const MAX_CHECK = 5_000;

/** The metadata of an item to publish. */
export type ItemMetadata = Omit<PublishedItem, keyof ContentReference>;

/** The result of adding entries. Those in neither set had a token that was taken. */
export interface Added {
  readonly added: ReadonlySet<Token>;
  readonly faults: ReadonlyMap<Token, StorageError>;
}

/** Combines a catalogue and a content store. */
export class MediaStorage implements Storage {
  readonly #engine: Engine;
  readonly #catalogue: Catalogue;
  readonly #content: ContentStore;
  #contentId: string | undefined;

  /** @param engine Closed together with this. */
  constructor(engine: Engine, content: ContentStore) {
    this.#engine = engine;
    this.#catalogue = engine.catalogue;
    this.#content = content;
  }

  /** The ledger of calls to the deprecated routes. */
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
          if (now.state !== "published") return now; // unpublished meanwhile
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
   * Checks that the content store is the one that the catalogue's items use, and creates it if no
   * item uses any.
   *
   * @throws {StorageError} When it is another one.
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

  /** Bytes of the longest content that can be stored. */
  get maxLength(): number {
    return this.#content.maxLength ?? Infinity;
  }

  /** Stages content without publishing it; see {@linkcode ContentStore.stage}. */
  async stage(source: Source): Promise<Staged> {
    await this.prepare();
    return await this.#content.stage(source);
  }

  /**
   * Publishes staged content, entirely or not at all.
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
   * Finds a published item with this name and this content, in the same place. One whose content is
   * known to be missing does not count: publishing again restores the content.
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
   * Inspects an object to be published in place.
   *
   * @param location `s3://bucket/key`
   * @throws {ObjectError} When it does not exist, or content is not stored in that bucket.
   */
  async inspect(location: string): Promise<ExistingContent> {
    await this.prepare();
    const object = await this.#content.inspect?.(location);
    if (object !== undefined) return object;
    throw new ObjectError(
      "storage",
      "CONTENT is not a bucket, so objects cannot be published in place",
    );
  }

  /**
   * Publishes an object in place. Unpublishing does not remove it.
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
   * Adds entries, whose content must already be stored or elsewhere, in one transaction. Entries
   * whose content is missing, or whose token was ever used, are skipped.
   *
   * @param records At most one for each token.
   * @returns The tokens that were added, and the content faults of others.
   * @throws {StorageError} When the catalogue or the content store fails.
   */
  async addAll(records: readonly CatalogueRecord[]): Promise<Added> {
    const add = async () => {
      const faults = await this.contentFaults(records);
      const sound = records.filter(([token]) => !faults.has(token));
      return { added: await this.#catalogue.addAll(sound), faults };
    };
    const items = itemsOf(records);
    // A store created before its content exists could not be replaced by the right one later.
    if (items.length === 0 || await this.#content.id() === undefined) return await add();
    await this.prepare();
    const copied = items.filter(({ location }) => location === undefined);
    if (copied.length === 0) return await add();
    return await this.#content.hold(copied.map(({ digest }) => digest), add);
  }

  /** Returns the content faults of entries, by token. */
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
   * Unpublishes an item: leaves a tombstone, and removes the content if no other item uses it.
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

  /** Looks up a token in the catalogue only, without checking the content. */
  lookUp(token: Token): Awaitable<LookupResult> {
    return this.#catalogue.find(token);
  }

  /** Looks up many tokens in the catalogue only; unknown ones are left out. */
  lookUpAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>> {
    return this.#catalogue.findAll(tokens);
  }

  /** Lists everything ever published, ordered by token, reading incrementally. */
  list(): AsyncIterable<[Token, CatalogueEntry]> {
    return this.#catalogue.list();
  }

  /** Returns random published items; see {@linkcode sampleOf}. */
  sample(size: number): AsyncIterable<[Token, CatalogueEntry]> {
    return sampleOf(this.#catalogue, size);
  }

  /** Compares an item's content with what is stored now, without reading it. */
  compare(item: PublishedItem): Promise<Comparison> {
    return this.#content.compare(item);
  }

  /** Lists digests of content that is probably unused; see {@linkcode unusedIn}. */
  listUnused(): AsyncIterable<string> {
    return unusedIn(this.#content, this.#catalogue);
  }

  /** Whether content is stored that no item uses and nobody is publishing. */
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

/** Returns the items whose content is in a bucket or folder. */
function itemsOf(records: readonly CatalogueRecord[]): PublishedItem[] {
  return records.flatMap(([, entry]) => entry.state === "published" ? [entry.item] : []);
}
