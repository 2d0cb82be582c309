/**
 * Storage of media: a catalogue and a content store. The server reads it, and commands write to it.
 */

import { fulfilledWithin } from "../../async/deadline.ts";
import { forEach } from "../../async/for_each.ts";
import { RefusedError } from "../../errors/refused_error.ts";
import { StorageError } from "../../errors/storage_error.ts";
import type { ByteRange } from "../../http/byte_range.ts";
import type { Body } from "../../http/outcome.ts";
import { quoted } from "../../input/printable.ts";
import type { Catalogue, TokenEntry } from "../catalogue/catalogue.ts";
import type { ContentStore, ExistingContent, Leftover, Source } from "../content/content_store.ts";
import { MissingError, ReplacedError, UnpublishedError } from "../errors.ts";
import type { ContentReference, FailedRead, LookupResult, PublishedItem } from "../item.ts";
import type { CacheableStorage, FindFault, ItemStorage, OnFault } from "../storage.ts";
import type { Token } from "../token.ts";

/** The timeout of a storage check, in milliseconds. */
const CHECK_TIMEOUT_MS = 5_000;

/** The number of items whose content an import checks at once. */
const CONCURRENT_CHECKS = 16;

/** The result of adding entries. The token of an entry in neither was taken. */
export interface Added {
  readonly added: ReadonlySet<Token>;
  readonly faults: ReadonlyMap<Token, Error>;
}

export class MediaStorage implements ItemStorage, CacheableStorage {
  #contentId: string | undefined;

  /** Both are closed by the caller. */
  constructor(readonly catalogue: Catalogue, readonly content: ContentStore) {}

  get isBilled(): boolean {
    return this.content.kind === "bucket";
  }

  async find(token: Token): Promise<LookupResult> {
    return await this.lookUp(token, (_, ask) => ask());
  }

  async lookUp(token: Token, findFault: FindFault): Promise<LookupResult> {
    const result = await this.catalogue.find(token);
    if (result.state !== "published") return result;
    const { item } = result;
    const ask = (read?: FailedRead) => this.#contentFault(item, read);
    const fault = await findFault(item, ask).catch((error: unknown) => error);
    if (fault === undefined) return result;
    const current = await this.catalogue.find(token);
    if (current.state !== "published") return current; // unpublished meanwhile
    throw fault;
  }

  async open(item: PublishedItem, range?: ByteRange, onFault?: OnFault): Promise<Body> {
    try {
      return await this.content.open(item, range, onFault);
    } catch (error) {
      const { state } = await this.catalogue.find(item.token);
      if (state !== "published") throw new UnpublishedError("The item was unpublished");
      throw error;
    }
  }

  async check(): Promise<void> {
    const id = this.#contentId;
    const checking = this.catalogue.version()
      .then(() => id === undefined ? undefined : this.content.check(id));
    if (await fulfilledWithin(CHECK_TIMEOUT_MS, checking)) return;
    throw new StorageError("storage", `no answer within ${CHECK_TIMEOUT_MS / 1000} s`);
  }

  /**
   * Checks that the content store is the one that the catalogue's items use, and creates it if no
   * item uses any.
   */
  async prepare(): Promise<void> {
    const found = await this.content.id();
    const id = await this.catalogue.claimContent(found || crypto.randomUUID());
    if (found !== id) {
      const mayCreate = found !== undefined || !await this.catalogue.uses();
      await (mayCreate ? this.content.create(id) : this.content.check(id));
    }
    this.#contentId = id;
  }

  /**
   * Fails if `prepare()` would find another content store than it needs. Changes nothing.
   *
   * @returns Whether `prepare()` would create the store.
   */
  async checkPreparation(): Promise<{ isCreating: boolean }> {
    const found = await this.content.id();
    const id = await this.catalogue.contentId();
    if (found && (id ?? found) === found) return { isCreating: false };
    const mayCreate = !found && (id === null || found === "" || !await this.catalogue.uses());
    if (!mayCreate) await this.content.check(id ?? "");
    return { isCreating: mayCreate };
  }

  /**
   * Checks that the content store is the one that the catalogue has claimed, if it has claimed one.
   * Changes nothing.
   */
  async checkContent(): Promise<void> {
    const id = await this.catalogue.contentId();
    if (id === null) return;
    await this.content.check(id);
    this.#contentId = id;
  }

  /**
   * Publishes content, entirely or not at all.
   *
   * @param reuse Whether to publish nothing if an item with this name and content already is.
   * @returns The published item: this one, or the one that was there before.
   * @throws {RefusedError} When the token was ever used.
   */
  async publish(item: PublishedItem, source: Source, reuse = false): Promise<PublishedItem> {
    await this.prepare();
    return await this.content.change(item, async () => {
      source.signal?.throwIfAborted();
      return await (reuse ? this.catalogue.addUnlessPublished(item) : this.catalogue.add(item));
    }, source);
  }

  /**
   * Finds a published item with this name and content, in the same place. Ignores items whose
   * content is missing, because publishing again restores it.
   */
  async findByContent(content: ContentReference, name: string): Promise<PublishedItem | undefined> {
    const item = await this.catalogue.findByContent(content, name);
    return item && await this.#contentFault(item) === undefined ? item : undefined;
  }

  /**
   * Returns whether content is stored that no item uses. In a folder, waits for changes in
   * progress.
   */
  async isUnused(digest: string): Promise<boolean> {
    if (await this.catalogue.uses(digest)) return false; // most content needs no lock
    return await this.content.withoutRemovals(async () =>
      !await this.catalogue.uses(digest) &&
      (await this.content.compare({ digest, length: 0 })).state !== "missing" // whatever its length
    );
  }

  /**
   * Returns the length and ETag of an object to be published in place.
   *
   * @param location `s3://bucket/key`
   * @throws {RefusedError} When it does not exist, or content is not stored in that bucket.
   */
  async statObject(location: string): Promise<ExistingContent> {
    if (this.content.kind === "bucket") return await this.content.statObject(location);
    throw new RefusedError("CONTENT is not a bucket, so objects cannot be published in place", {
      kind: "no bucket",
    });
  }

  /**
   * Adds entries in one transaction. Their content must already be stored, or be at a public URL.
   * Skips entries whose content is missing, or whose token was ever used.
   *
   * @param entries At most one for each token.
   * @param isDryRun Whether to report what would be added, without adding it.
   * @returns The tokens that were added, and the content faults of others.
   */
  async addAll(entries: readonly TokenEntry[], isDryRun = false): Promise<Added> {
    const items = entries.flatMap(([, entry]) => entry.state === "published" ? [entry.item] : []);
    const copied = items.filter(({ location }) => location === undefined);
    const add = async () => {
      const faults = await this.#importFaults(items);
      const valid = entries.filter(([token]) => !faults.has(token));
      const tokens = valid.map(([token]) => token);
      return { added: isDryRun ? new Set(tokens) : await this.catalogue.addAll(valid), faults };
    };
    if (items.length === 0) return await add();
    // Creating a store without any of the content would bind the catalogue to the wrong place.
    const isNew = await this.content.id() === undefined;
    if (isNew && (await this.#importFaults(copied)).size === copied.length) return await add();
    if (isDryRun) await this.checkContent();
    else await this.prepare();
    if (isDryRun || copied.length === 0) return await add();
    return await this.content.withoutRemovals(add);
  }

  async #importFaults(items: readonly PublishedItem[]): Promise<Map<Token, Error>> {
    const faults = new Map<Token, Error>();
    const all = async function* () {
      yield* items;
    }();
    await forEach(all, { concurrency: CONCURRENT_CHECKS }, async (item) => {
      const fault = await this.#importFault(item);
      if (fault !== undefined) faults.set(item.token, fault);
    });
    return faults;
  }

  async #importFault(item: PublishedItem): Promise<Error | undefined> {
    const { location, length, validator } = item;
    try {
      if (location === undefined) return await this.#contentFault(item);
      const found = await this.statObject(location);
      if (found.length === length && found.validator === validator) return undefined;
      return new ReplacedError(
        "content",
        `${quoted(location)} is another object than was published`,
        { kind: "another object" },
      );
    } catch (error) {
      if (!(error instanceof StorageError || error instanceof RefusedError)) throw error;
      await this.content.id(); // throws if more than this item is at fault
      return error;
    }
  }

  /** Returns the tokens of items in place whose objects were replaced, or have another ETag. */
  async findReplaced(items: readonly PublishedItem[]): Promise<ReadonlySet<Token>> {
    if (this.content.kind !== "bucket") return new Set();
    const faults = await this.#importFaults(items.filter(({ location }) => location !== undefined));
    const isReplaced = (token: Token) => faults.get(token) instanceof ReplacedError;
    return new Set(faults.keys().filter(isReplaced));
  }

  /** Returns a fault if content is not as it was published. */
  async #contentFault(
    item: PublishedItem,
    read?: FailedRead,
  ): Promise<StorageError | undefined> {
    const comparison = await this.content.compare(item, read);
    if (comparison.state === "same") return undefined;
    const { reason, kind } = comparison;
    if (comparison.state === "missing") return new MissingError("content", reason, { kind });
    // Only in a bucket can others replace content.
    const isReplaced = comparison.state === "different" && this.content.kind === "bucket";
    return new (isReplaced ? ReplacedError : StorageError)("content", reason, { kind });
  }

  /**
   * Unpublishes an item: leaves a tombstone. A folder removes the content if no other item uses it.
   *
   * @param at Milliseconds since the epoch.
   * @returns Whether it was published until now.
   * @throws {StorageError} When the catalogue fails, or the content belongs to another one.
   */
  async unpublish(token: Token, at: number): Promise<boolean> {
    const result = await this.catalogue.find(token);
    const unpublish = () => this.catalogue.unpublish(token, at);
    if (result.state !== "published" || result.item.location !== undefined) {
      return await unpublish();
    }
    await this.prepare(); // otherwise a folder could lose content of another catalogue
    return await this.content.change(result.item, unpublish);
  }

  /**
   * Deletes what earlier changes have left in a folder, because they were killed or could not delete
   * it.
   *
   * @param digest The digest of the only content to delete; all of it if left out.
   */
  async deleteLeftovers(digest?: string): Promise<Leftover[]> {
    if (this.content.kind !== "folder" || await this.catalogue.contentId() === null) return [];
    await this.checkContent();
    return await this.content.deleteLeftovers(digest);
  }
}
