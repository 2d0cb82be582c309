/**
 * The catalogue: what is published, in Deno KV.
 *
 * Keys: `["content"]` holds the name of the place of content; `["item", token]` holds an item or its tombstone; `["use", digest, token]` stands as long
 * as a published item uses that content. Both change in one atomic commit.
 */

import { type Catalogue, TokenTakenError } from "../catalogue.ts";
import { parseToken, type Token } from "../token.ts";
import { BatchedReads } from "./batch.ts";
import { guarded, listKv } from "./kv.ts";
import { type Entry, type Finding, type PublishedItem, StorageError } from "../storage.ts";

type Check = (value: unknown) => boolean;

/**
 * What the facts of a record have to be: another version may have written them. A fact without a
 * check does not compile.
 */
type Checks<Facts> = { readonly [Fact in keyof Facts]-?: Check };

const text = (pattern: RegExp): Check => (value) =>
  typeof value === "string" && pattern.test(value);
const optional = (check: Check): Check => (value) => value === undefined || check(value);
const KIND = text(/^(audio|video)$/);
const INSTANT: Check = Number.isSafeInteger;

type Published = Omit<PublishedItem, "token">;
type Unpublished = Pick<Entry & { state: "unpublished" }, "kind" | "unpublishedAt">;

const PUBLISHED: Checks<Published> = {
  kind: KIND,
  type: text(/^(audio|video)\/[\x21-\x7e][\x20-\x7e]*$/),
  length: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  digest: text(/^[0-9a-f]{64}$/),
  publishedAt: INSTANT,
  name: optional(text(/^/)),
  language: optional(text(/^[A-Za-z0-9-]+$/)),
};
const UNPUBLISHED: Checks<Unpublished> = { kind: KIND, unpublishedAt: INSTANT };

/** A catalogue in Deno KV. */
export class KvCatalogue implements Catalogue {
  readonly #kv: Deno.Kv;
  readonly #reads: BatchedReads;

  /** @param kv Stays the caller's to close. */
  constructor(kv: Deno.Kv) {
    this.#kv = kv;
    this.#reads = new BatchedReads(kv);
  }

  /** @inheritdoc */
  async find(token: Token): Promise<Finding> {
    const value = await this.#reads.read(itemKey(token));
    return value === null ? { state: "unknown" } : parseEntry(token, value);
  }

  /** @inheritdoc */
  async add(item: PublishedItem): Promise<void> {
    const { token, ...entry } = item;
    const { ok } = await guarded("cannot add an item", () =>
      this.#kv.atomic()
        .check({ key: itemKey(token), versionstamp: null })
        .set(itemKey(token), { state: "published", ...entry })
        .set(useKey(item.digest, token), true)
        .commit());
    if (!ok) throw new TokenTakenError(token);
  }

  /** @inheritdoc */
  async retire(item: PublishedItem, unpublishedAt: number): Promise<boolean> {
    const { token, kind, digest } = item;
    const current = await guarded("cannot read an item", () => this.#kv.get(itemKey(token)));
    if (current.value === null || parseEntry(token, current.value).state !== "published") {
      return false;
    }
    const { ok } = await guarded("cannot unpublish an item", () =>
      this.#kv.atomic()
        .check(current)
        .set(itemKey(token), { state: "unpublished", kind, unpublishedAt })
        .delete(useKey(digest, token))
        .commit());
    return ok;
  }

  /** @inheritdoc */
  async uses(digest: string): Promise<boolean> {
    for await (const _ of listKv(this.#kv, { prefix: ["use", digest] }, { limit: 1 })) return true;
    return false;
  }

  /** @inheritdoc */
  async isEmpty(): Promise<boolean> {
    for await (const _ of listKv(this.#kv, { prefix: ["item"] }, { limit: 1 })) return false;
    return true;
  }

  /** @inheritdoc */
  async *list(): AsyncGenerator<[Token, Entry]> {
    for await (const { key, value } of listKv(this.#kv, { prefix: ["item"] })) {
      const token = parseToken(String(key[1]));
      if (token === undefined) throw new StorageError("kv", "a key of the catalogue is no token");
      yield [token, parseEntry(token, value)];
    }
  }

  /** @inheritdoc */
  async claimContent(id: string): Promise<string> {
    const key = ["content"];
    await guarded("cannot read the catalogue", () =>
      // the first one stays
      this.#kv.atomic().check({ key, versionstamp: null }).set(key, id).commit());
    const { value } = await guarded("cannot read the catalogue", () => this.#kv.get(key));
    return String(value);
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    await guarded("the catalogue does not answer", () => this.#kv.get(["item"]));
  }
}

const itemKey = (token: Token) => ["item", token];
const useKey = (digest: string, token: Token) => ["use", digest, token];

/** Checks a record whenever it is read, and takes from it what is known. */
function parseEntry(token: Token, value: unknown): Entry {
  const record = Object(value) as Record<string, unknown>;
  if (record["state"] === "published") {
    const facts = factsOf<Published>(record, PUBLISHED);
    return { state: "published", kind: facts.kind, item: { token, ...facts } };
  }
  if (record["state"] === "unpublished") {
    return { state: "unpublished", ...factsOf<Unpublished>(record, UNPUBLISHED) };
  }
  throw malformed(["state"]);
}

function factsOf<Facts>(record: Record<string, unknown>, checks: Checks<Facts>): Facts {
  const all = Object.entries<Check>(checks);
  const faults = all.filter(([name, check]) => !check(record[name])).map(([name]) => name);
  if (faults.length > 0) throw malformed(faults);
  const facts = all.map(([name]) => [name, record[name]]).filter(([, fact]) => fact !== undefined);
  return Object.fromEntries(facts) as Facts;
}

function malformed(facts: string[]): StorageError {
  return new StorageError("kv", `a record of the catalogue is malformed (${facts.join(", ")})`);
}
