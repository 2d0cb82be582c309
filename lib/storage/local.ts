/**
 * Storage on one machine: the catalogue in Deno KV, the content in files beside it. Reading for
 * the server, and writing for the command line.
 */

import { within } from "./deadline.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { Token } from "./token.ts";
import { Catalogue } from "./kv/catalogue.ts";
import { Files, type Staged } from "./files.ts";
import { openKv } from "./kv/kv.ts";
import type { Ledger } from "./ledger.ts";
import { KvLedger } from "./kv/ledger.ts";
import {
  type Entry,
  type Finding,
  type PublishedItem,
  type Storage,
  StorageError,
  UnpublishedError,
} from "./storage.ts";

/** Milliseconds that storage may take to show that it answers. */
const MAX_CHECK = 5_000;

/** Where storage is. */
export interface StorageLocation {
  /** A path or a KV Connect URL; the platform's own KV without one. */
  readonly kv: string | undefined;
  /** The content folder. */
  readonly files: string;
}

/** What publishing needs to know of an item besides its content. */
export type Description = Omit<PublishedItem, "digest" | "length">;

/** Catalogue and content files as one. */
export class LocalStorage implements Storage {
  readonly #kv: Deno.Kv;
  readonly #catalogue: Catalogue;
  readonly #files: Files;
  /** Who called the deprecated routes. */
  readonly ledger: Ledger;

  private constructor(kv: Deno.Kv, files: Files) {
    this.#kv = kv;
    this.#catalogue = new Catalogue(kv);
    this.#files = files;
    this.ledger = new KvLedger(kv);
  }

  /** @throws {StorageError} When the catalogue cannot be opened. */
  static async open({ kv, files }: StorageLocation): Promise<LocalStorage> {
    return new LocalStorage(await openKv(kv), new Files(files));
  }

  /** @inheritdoc */
  async find(token: Token): Promise<Finding> {
    const finding = await this.#catalogue.find(token);
    if (finding.state === "published") {
      await this.#files.requireContent(finding.item.digest, finding.item.length);
    }
    return finding;
  }

  /** @inheritdoc */
  async open({ token, digest, length }: PublishedItem, range?: ByteRange) {
    try {
      return await this.#files.open(digest, length, range);
    } catch (error) {
      const { state } = await this.#catalogue.find(token);
      if (state !== "published") throw new UnpublishedError("The item was unpublished");
      throw error;
    }
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    const halves = Promise.all([this.#catalogue.check(), this.#files.check()]);
    if (await within(MAX_CHECK, halves)) return;
    throw new StorageError("storage", `no answer within ${MAX_CHECK / 1000} s`);
  }

  /**
   * Makes sure that content is where the catalogue's items have theirs, and makes the folder where
   * nothing was ever published.
   *
   * @throws {StorageError} When it is elsewhere.
   */
  async prepare(): Promise<void> {
    if (await this.#catalogue.isEmpty()) await this.#files.create();
    else await this.#files.check();
  }

  /** @inheritdoc */
  close(): void {
    this.#kv.close();
  }

  /** Takes content in without publishing it; see {@linkcode Files.stage}. */
  async stage(source: AsyncIterable<Uint8Array>): Promise<Staged> {
    await this.prepare();
    return await this.#files.stage(source);
  }

  /**
   * Publishes staged content, whole or not at all.
   *
   * @throws {TokenTakenError} When the token was ever used.
   * @throws {StorageError} When the catalogue fails.
   */
  async publish(description: Description, staged: Staged): Promise<PublishedItem> {
    const { digest, length } = staged;
    const item: PublishedItem = { ...description, digest, length };
    await this.#change(digest, () => this.#catalogue.add(item), staged);
    return item;
  }

  /**
   * Unpublishes an item: leaves a tombstone, and removes the content when no other item uses it.
   *
   * @param at Milliseconds since the epoch.
   * @returns Whether it was published until now.
   * @throws {StorageError} When the catalogue fails.
   */
  async unpublish(token: Token, at: number): Promise<boolean> {
    const finding = await this.#catalogue.find(token);
    if (finding.state !== "published") return false;
    const { item } = finding;
    return await this.#change(item.digest, () => this.#catalogue.retire(item, at));
  }

  /** What the catalogue says of a token, whether or not the content is whole. */
  lookUp(token: Token): Promise<Finding> {
    return this.#catalogue.find(token);
  }

  /** Everything ever published, in the order of tokens, read bit by bit. */
  list(): AsyncIterable<[Token, Entry]> {
    return this.#catalogue.list();
  }

  /** Whether nothing was ever published. */
  isEmpty(): Promise<boolean> {
    return this.#catalogue.isEmpty();
  }

  #change<T>(digest: string, change: () => Promise<T>, staged?: Staged): Promise<T> {
    return this.#files.change(digest, (digest) => this.#catalogue.uses(digest), change, staged);
  }
}
