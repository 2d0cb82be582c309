/**
 * Content in a bucket of an S3-compatible store: the bytes of published items, each stored once
 * under its digest, or wherever it was published in place.
 *
 *     PREFIX/ab/abcd…      content, named by its SHA-256
 *     PREFIX/media-head    holds the name of this place
 *
 * An object exists completely or not at all, so nothing is staged. A killed process may leave an
 * object that no item uses.
 */

import QuickLRU from "quick-lru";
import type { Body } from "../../http/answer.ts";
import type { Awaitable } from "../../http/awaitable.ts";
import type { ByteRange } from "../../http/byte_range.ts";
import {
  AT_ONCE,
  type BucketSettings,
  type Comparison,
  type ContentReference,
  type ContentStore,
  type ExistingContent,
  type Source,
  type Staged,
} from "../content.ts";
import type { Engine, Exclusively } from "../engine.ts";
import { MAX_LOCATION, MAX_STATED, ObjectError, ReplacedError, StorageError } from "../storage.ts";
import { keyOf, locationOf } from "./address.ts";
import {
  codeIn,
  conditionOf,
  type ExpectedContent,
  nameOf,
  reasonIn,
  requireUnchanged,
  unreadable,
} from "./responses.ts";
import { type Download, StoreClient, type StoreResponse } from "./client.ts";
import { listNames } from "./listing.ts";
import { contentOf, readAtOnce } from "./stream.ts";

/** The last part of the key of the object that holds the name of this place. */
const PLACE = "media-head";

/** The maximum size of a PUT, in bytes. */
const MAX_PUT = 5 * 2 ** 30;

/** The timeout for removing an object, in milliseconds. */
const REMOVING = 30_000;

/** The maximum time between uploading content and locking it, in milliseconds. */
const SETTLING = 2_000;

/** The maximum number of objects checked concurrently. */
const LOOKS = 16;

/** The number of faulty contents remembered, the most recent ones; at most twice as many. */
const FAULTY = 5_000;

/** Content being published; none of it is in the bucket yet. */
interface StagedSource extends Staged {
  readonly source: Source;
}

/**
 * Opens the content of a catalogue, without sending a request to the store yet.
 *
 * @param engine Locks content that is about to be removed.
 */
export function openContent(
  settings: BucketSettings,
  { exclusively }: Pick<Engine, "exclusively">,
): ContentStore {
  return new BucketContent(settings, exclusively);
}

/** Content in a bucket. */
class BucketContent implements ContentStore {
  readonly maxLength = MAX_PUT;
  readonly settling = SETTLING;
  readonly #settings: BucketSettings;
  readonly #client: StoreClient;
  readonly #exclusively: Exclusively;
  /** Content that failed when it was last read. */
  readonly #faulty = new QuickLRU<string, true>({ maxSize: FAULTY });
  readonly #looks = new Map<string, Promise<unknown>>();

  constructor(settings: BucketSettings, exclusively: Exclusively) {
    this.#settings = settings;
    this.#client = new StoreClient(settings);
    this.#exclusively = exclusively;
  }

  /** @inheritdoc */
  async id(): Promise<string | undefined> {
    const response = await this.#client.request("GET", this.#ownKey(PLACE));
    if (response.status === 200) return response.text;
    if (response.status === 404 && codeIn(response) !== "NoSuchBucket") return undefined;
    throw this.#fault("cannot be read", response);
  }

  /** @inheritdoc */
  async create(id: string): Promise<void> {
    if (await this.id()) return;
    const response = await this.#client.request("PUT", this.#ownKey(PLACE), { text: id });
    if (response.status !== 200) throw this.#fault("cannot be written to", response);
  }

  /** @inheritdoc */
  async check(id: string): Promise<void> {
    if (await this.id() === id) return;
    throw this.#fault("is not the place with the content of this catalogue");
  }

  /**
   * Checks that content is present if there is reason to doubt it: it failed when it was last read,
   * or the store did not respond at all.
   */
  requireContent(content: ContentReference): Awaitable<void> {
    const look = () => {
      const name = identityOf(content);
      if (this.#faulty.has(name)) return this.#once(name, () => this.#look(content));
    };
    if (this.#client.isReachable) return look();
    return this.#once(PLACE, () => this.#client.request("HEAD", this.#ownKey(PLACE))).then(look);
  }

  /** @inheritdoc */
  async open(
    content: ContentReference,
    range?: ByteRange,
  ): Promise<Body> {
    const name = identityOf(content);
    const onFault = () => this.#faulty.set(name, true);
    const length = lengthOf(content, range);
    try {
      const download = await this.#download(content, range);
      const body = length <= AT_ONCE
        ? await readAtOnce(download, { length })
        : contentOf(download, { length, onFault });
      this.#faulty.delete(name);
      return body;
    } catch (error) {
      onFault();
      throw error;
    }
  }

  /** @inheritdoc */
  async inspect(location: string): Promise<ExistingContent> {
    const refusal = (why: string) => new ObjectError("bucket", `${location} ${why}`);
    const key = keyOf(location, this.#settings);
    if (key === undefined || location.length > MAX_LOCATION) {
      throw refusal("is not an object in the bucket in CONTENT");
    }
    if (this.#isOwn(key)) throw refusal("is content that was copied here, and may be removed");
    const response = await this.#client.request("HEAD", key);
    if (response.status === 404) throw refusal("does not exist");
    if (response.status === 403) throw refusal(`cannot be read${reasonIn(response)}`);
    if (response.status !== 200) throw unreadable(location, response);
    const { headers } = response;
    const [length, validator] = [Number(headers.get("content-length")), headers.get("etag") ?? ""];
    const encoding = headers.get("content-encoding") ?? "";
    if (length === 0) throw refusal("is empty");
    if (!/^(aws-chunked|identity)?$/.test(encoding)) {
      throw refusal(`is stored with Content-Encoding: ${encoding}`);
    }
    if (!/^"[ -~]+"$/.test(validator) || validator.length > MAX_STATED) {
      throw refusal("has no strong ETag, to tell it from another in its place");
    }
    const object = { location, length, validator };
    const open = async (range?: ByteRange) => {
      const options = { length: lengthOf(object, range), onFault() {} };
      return contentOf(await this.#download(object, range), options);
    };
    return { ...object, open };
  }

  /** @inheritdoc */
  async stage(source: Source): Promise<StagedSource> {
    const { createHash } = await import("node:crypto"); // not needed to serve
    const hash = createHash("sha256");
    let length = 0;
    for await (const chunk of source.read("hashing")) {
      hash.update(chunk);
      length += chunk.length;
    }
    return { digest: hash.digest("hex"), length, source, async [Symbol.asyncDispose]() {} };
  }

  /**
   * Changes which items use some content. New content is in place before and during the commit, and
   * nobody can remove it in between; content that is no longer used is removed afterwards.
   */
  async change<T>(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
    change: () => Promise<T>,
    staged?: StagedSource,
  ): Promise<T> {
    const discard = async () => {
      if (!await isUsed(digest)) await this.#remove(digest);
    };
    for (;;) {
      if (staged !== undefined) await this.#put(staged); // may take long, so without the lock
      const changed = await this.#exclusively([lockOf(digest)], async () => {
        if (staged !== undefined && !await this.#isThere(staged)) return undefined;
        try {
          const result = await change();
          if (staged === undefined) await discard();
          return { result };
        } catch (error) {
          if (staged !== undefined) await discard().catch(() => {}); // the first fault matters
          throw error;
        }
      });
      if (changed !== undefined) return changed.result;
      // Otherwise whoever unpublished its last item has removed it.
    }
  }

  /** @inheritdoc */
  async compare(content: ContentReference): Promise<Comparison> {
    const response = await this.#request(content);
    if (response.status === 404) {
      return { state: "missing", reason: `${nameOf(content)} is missing` };
    }
    try {
      requireUnchanged(content, response);
      return { state: "same" };
    } catch (error) {
      if (!(error instanceof ReplacedError)) throw error;
      return { state: "different", reason: error.fault };
    }
  }

  /** @inheritdoc */
  async *list(): AsyncGenerator<string> {
    const { bucket, prefix } = this.#settings;
    const location = `${JSON.stringify(locationOf(prefix, { bucket }))} (CONTENT)`;
    const names = (key: string) => listNames(this.#client, this.#ownKey(key), location);
    for await (const folder of names("")) {
      if (!/^[0-9a-f]{2}\/$/.test(folder)) continue; // not ours
      for await (const name of names(folder + folder.slice(0, 2))) {
        if (/^[0-9a-f]{64}$/.test(name)) yield name;
      }
    }
  }

  /** @inheritdoc */
  isUnused(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
  ): Promise<boolean> {
    return this.#exclusively([lockOf(digest)], async () => {
      if (await isUsed(digest)) return false;
      const response = await this.#request({ digest });
      if (response.status === 200 || response.status === 404) return response.status === 200;
      throw unreadable(nameOf({ digest }), response);
    });
  }

  /** @inheritdoc */
  hold<T>(digests: readonly string[], action: () => Promise<T>): Promise<T> {
    return this.#exclusively([...new Set(digests.map(lockOf))], action);
  }

  /** @inheritdoc */
  async faultsIn(contents: readonly ContentReference[]): Promise<(StorageError | undefined)[]> {
    const faults: (StorageError | undefined)[] = contents.map(() => undefined);
    const rest = contents.entries();
    const work = async () => {
      for (const [at, content] of rest) faults[at] = await this.#faultIn(content);
    };
    await Promise.all(Array.from({ length: LOOKS }, work));
    return faults;
  }

  /** @inheritdoc */
  close(): Promise<void> {
    this.#client.close();
    return Promise.resolve();
  }

  async #download(content: ExpectedContent, range?: ByteRange): Promise<Download> {
    const response = await this.#client.download(this.#keyOf(content), {
      ...conditionOf(content),
      ...(range === undefined ? {} : { Range: `bytes=${range.first}-${range.last}` }),
    });
    try {
      requireUnchanged(content, response, range);
      if ("body" in response) return response;
      throw unreadable(nameOf(content), response);
    } catch (error) {
      if ("body" in response) response.end();
      throw error;
    }
  }

  /** Checks that content is present as published. */
  async #look(content: ContentReference): Promise<void> {
    requireUnchanged(content, await this.#request(content));
    this.#faulty.delete(identityOf(content));
  }

  /** Requests the headers of content. */
  #request(
    content: Pick<ExpectedContent, "digest" | "location" | "validator">,
  ): Promise<StoreResponse> {
    const fields = conditionOf(content);
    return this.#client.request("HEAD", this.#keyOf(content), { fields });
  }

  async #faultIn(content: ContentReference): Promise<StorageError | undefined> {
    const { location, length, validator } = content;
    try {
      if (location === undefined) await this.#look(content);
      else {
        const found = await this.inspect(location);
        if (found.length === length && found.validator === validator) return;
        return new ReplacedError("bucket", `${location} is another object than was published`);
      }
    } catch (error) {
      if (!(error instanceof StorageError) || !this.#client.isReachable) throw error;
      return error;
    }
  }

  /** Runs an action, or waits for the one of this name that is running. */
  async #once(name: string, action: () => Promise<unknown>): Promise<void> {
    let running = this.#looks.get(name);
    if (running === undefined) {
      running = action().finally(() => this.#looks.delete(name));
      this.#looks.set(name, running);
    }
    await running;
  }

  /** Uploads content, unless it is present. */
  async #put(staged: StagedSource): Promise<void> {
    if (await this.#isThere(staged)) return;
    const { digest, source } = staged;
    const fields = { "X-Amz-Content-Sha256": digest };
    const { url, headers } = await this.#client.sign("PUT", this.#keyOf(staged), fields);
    const { upload } = await import("./upload.ts"); // not needed to serve
    const response = await upload({ url, headers, content: staged, source });
    if (response.status !== 200) throw this.#fault(`does not take content ${digest}`, response);
  }

  /** Returns whether an object of the right length is in the place of content. */
  async #isThere(content: Staged): Promise<boolean> {
    const response = await this.#request(content);
    if (response.status === 404) return false;
    if (response.status !== 200) throw unreadable(nameOf(content), response);
    return response.headers.get("content-length") === String(content.length);
  }

  async #remove(digest: string): Promise<void> {
    const key = this.#keyOf({ digest });
    const response = await this.#client.request("DELETE", key, { timeout: REMOVING });
    if (response.status === 204 || response.status === 200 || response.status === 404) return;
    const location = locationOf(key, this.#settings);
    throw new StorageError(
      "bucket",
      `${location} is used by no item any more, and cannot be removed${reasonIn(response)}`,
    );
  }

  #keyOf({ digest = "", location }: Pick<ExpectedContent, "digest" | "location">): string {
    if (location === undefined) return this.#ownKey(`${digest.slice(0, 2)}/${digest}`);
    const key = keyOf(location, this.#settings);
    if (key !== undefined) return key;
    throw new StorageError("bucket", `content ${digest} is in another bucket: ${location}`);
  }

  #ownKey(name: string): string {
    const { prefix } = this.#settings;
    return prefix === "" ? name : `${prefix}/${name}`;
  }

  /** Returns whether a key belongs to an object of ours, which may be removed. */
  #isOwn(key: string): boolean {
    const name = key.startsWith(this.#ownKey("")) ? key.slice(this.#ownKey("").length) : "";
    return name === PLACE || /^[0-9a-f]{2}\/[0-9a-f]{64}$/.test(name);
  }

  /** Returns an error about the place as a whole. */
  #fault(what: string, response?: Pick<StoreResponse, "status" | "text">): StorageError {
    const { bucket, prefix } = this.#settings;
    const place = JSON.stringify(locationOf(prefix, { bucket }));
    const reason = response === undefined ? "" : reasonIn(response);
    return new StorageError("bucket", `${place} (CONTENT) ${what}${reason}`);
  }
}

/** Returns what distinguishes published content from any other, even in the same place. */
function identityOf({ digest, location = "", validator = "" }: ContentReference): string {
  return `${digest} ${validator} ${location}`;
}

/**
 * Returns the name of the lock on whether some content is used. Contents share 256 locks, so that an
 * import takes no more at once.
 */
function lockOf(digest: string): string {
  return `content ${digest.slice(0, 2)}`;
}

function lengthOf({ length }: ExpectedContent, range: ByteRange | undefined): number {
  return range === undefined ? length : range.last - range.first + 1;
}
