/**
 * A catalogue in memory.
 */

import { type Catalogue, type CatalogueRecord, TokenTakenError } from "../catalogue.ts";
import type { ContentReference } from "../content.ts";
import {
  type CatalogueEntry,
  entryOf,
  type LinkedItem,
  type LookupResult,
  type PublishedItem,
  StorageError,
} from "../storage.ts";
import type { Token } from "../token.ts";

/** A catalogue that lasts as long as its object. */
export class MemoryCatalogue implements Catalogue {
  readonly #entries = new Map<Token, CatalogueEntry>();
  readonly versionTtl = 1;
  #contentId: string | undefined;
  #version = 0;
  #isClosed = false;

  /** @inheritdoc */
  version(): number {
    return this.#version;
  }

  /** @inheritdoc */
  find(token: Token): LookupResult {
    this.#requireOpen();
    return this.#entries.get(token) ?? { state: "unknown" };
  }

  /** @inheritdoc */
  findAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>> {
    this.#requireOpen();
    const found = new Map<Token, CatalogueEntry>();
    for (const token of tokens) {
      const entry = this.#entries.get(token);
      if (entry !== undefined) found.set(token, entry);
    }
    return Promise.resolve(found);
  }

  /** @inheritdoc */
  async add(item: PublishedItem | LinkedItem): Promise<void> {
    const { token } = item;
    const added = await this.addAll([[token, entryOf(item)]]);
    if (!added.has(token)) throw new TokenTakenError(token);
  }

  /** @inheritdoc */
  addAll(entries: readonly CatalogueRecord[]): Promise<ReadonlySet<Token>> {
    const added = new Set<Token>();
    for (const [token, entry] of entries) {
      if (this.#entries.has(token)) continue;
      this.#entries.set(token, entry);
      added.add(token);
    }
    if (added.size > 0) this.#version++;
    return Promise.resolve(added);
  }

  /** @inheritdoc */
  unpublish(token: Token, unpublishedAt: number): Promise<boolean> {
    const entry = this.#entries.get(token);
    if (entry === undefined || entry.state === "unpublished") return Promise.resolve(false);
    this.#entries.set(token, { state: "unpublished", kind: entry.kind, unpublishedAt });
    this.#version++;
    return Promise.resolve(true);
  }

  /** @inheritdoc */
  uses(digest?: string): Promise<boolean> {
    const isUser = (entry: CatalogueEntry) =>
      entry.state === "published" && (digest ?? entry.item.digest) === entry.item.digest &&
      entry.item.location === undefined;
    return Promise.resolve(this.#entries.values().some(isUser));
  }

  /** @inheritdoc */
  findByContent(
    { digest, location, validator }: Omit<ContentReference, "length">,
    name: string,
  ): Promise<PublishedItem | undefined> {
    for (const entry of this.#entries.values()) {
      if (entry.state !== "published") continue;
      const { item } = entry;
      const isSame = item.digest === digest && item.name === name &&
        item.location === location && item.validator === validator;
      if (isSame) return Promise.resolve(item);
    }
    return Promise.resolve(undefined);
  }

  /** @inheritdoc */
  async unused(digests: readonly string[]): Promise<string[]> {
    const uses = await Promise.all(digests.map((digest) => this.uses(digest)));
    return digests.filter((_, index) => !uses[index]);
  }

  /** @inheritdoc */
  isEmpty(): Promise<boolean> {
    return Promise.resolve(this.#entries.size === 0);
  }

  /** @inheritdoc */
  async *list(after = ""): AsyncGenerator<[Token, CatalogueEntry]> {
    for (const token of [...this.#entries.keys()].filter((token) => token > after).sort()) {
      yield await Promise.resolve([token, this.#entries.get(token) as CatalogueEntry]);
    }
  }

  /** @inheritdoc */
  claimContent(id: string): Promise<string> {
    return Promise.resolve(this.#contentId ??= id);
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    await Promise.resolve(this.#requireOpen());
  }

  /** Makes every later lookup fail. */
  close(): void {
    this.#isClosed = true;
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new StorageError("memory", "closed");
  }
}
