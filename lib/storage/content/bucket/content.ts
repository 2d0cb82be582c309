/**
 * Content in a bucket of an S3-compatible store: the bytes of published items, each stored once
 * under its digest, or wherever it was published in place.
 *
 *     PREFIX/ab/abcd…      content, named by its SHA-256
 *     PREFIX/media-head    contains the store's identifier
 *
 * An object exists completely or not at all, so nothing is staged. A killed process may leave an
 * object that no item uses.
 */

import type { Patience } from "../../../async/abort.ts";
import type { Body } from "../../../http/outcome.ts";
import type { ByteRange } from "../../../http/byte_range.ts";
import {
  AT_ONCE,
  type Comparison,
  type ExistingContent,
  type ObjectStore,
  type Source,
  type Staged,
} from "../content_store.ts";
import type { BucketSettings } from "../content_place.ts";
import { type ContentReference, MAX_LOCATION, MAX_STATED } from "../../item.ts";
import type { Engine } from "../../database/engine.ts";
import { ObjectError, ReplacedError, StorageError } from "../../errors.ts";
import type { OnFault } from "../../storage.ts";
import { locationOf, objectKeyIn } from "./address.ts";
import {
  codeIn,
  conditionOf,
  type ExpectedContent,
  faultIn,
  nameOf,
  readFault,
  reasonIn,
} from "./responses.ts";
import { type Download, StoreClient, type StoreResponse } from "./client.ts";
import { listNames } from "./listing.ts";
import { contentOf, readAtOnce } from "./stream.ts";

/** The last part of the key of the object with the store's identifier. */
const PLACE = "media-head";

/** Content to publish that is not in the bucket yet. */
interface StagedSource extends Staged {
  readonly source: Source;
}

export class BucketContent implements ObjectStore {
  readonly kind = "bucket";
  readonly maxLength = 5 * 2 ** 30; // bytes in a PUT
  readonly settlingMs = 2_000;
  readonly #settings: BucketSettings;
  readonly #client: StoreClient;
  readonly #engine: Pick<Engine, "catalogue" | "exclusively">;

  constructor(
    settings: BucketSettings,
    engine: Pick<Engine, "catalogue" | "exclusively">,
    patience: Patience = {},
  ) {
    this.#settings = settings;
    this.#client = new StoreClient(settings, patience);
    this.#engine = engine;
  }

  async id(): Promise<string | undefined> {
    const response = await this.#client.request("GET", this.#ownKey(PLACE));
    if (response.status === 200) return response.text;
    if (response.status === 404 && codeIn(response) !== "NoSuchBucket") return undefined;
    throw this.#fault("cannot be read", response);
  }

  async create(id: string): Promise<void> {
    if (await this.id()) return;
    const response = await this.#client.request("PUT", this.#ownKey(PLACE), { text: id });
    if (response.status !== 200) throw this.#fault("cannot be written to", response);
  }

  async check(id: string): Promise<void> {
    if (await this.id() === id) return;
    throw this.#fault("is not the place with the content of this catalogue");
  }

  async open(content: ContentReference, range?: ByteRange, onFault?: OnFault): Promise<Body> {
    const length = lengthOf(content, range);
    const download = await this.#download(content, range);
    if (length <= AT_ONCE) return await readAtOnce(download, length);
    return contentOf(download, { length }, onFault);
  }

  async statObject(location: string): Promise<ExistingContent> {
    const refusal = (why: string) => new ObjectError("bucket", `${location} ${why}`);
    const key = objectKeyIn(location, this.#settings);
    if (key === undefined || location.length > MAX_LOCATION) {
      throw refusal("is not an object in the bucket in CONTENT");
    }
    if (this.#isOwn(key)) throw refusal("is content that was copied here, and may be removed");
    const response = await this.#client.request("HEAD", key);
    if (response.status === 404) throw refusal("does not exist");
    if (response.status === 403) throw refusal(`cannot be read${reasonIn(response)}`);
    if (response.status !== 200) throw readFault(location, response);
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
      return contentOf(await this.#download(object, range), { length: lengthOf(object, range) });
    };
    return { ...object, open };
  }

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
   * New content is in place before, during and after the commit. Content that is no longer used is
   * removed afterwards, under the lock if that can be had. If it cannot, both sides look once more,
   * so that an item that another process publishes meanwhile keeps its content.
   */
  async change<T>(digest: string, commit: () => Promise<T>, staged?: StagedSource): Promise<T> {
    const isUsed = () => this.#engine.catalogue.uses(digest);
    const discard = async () => {
      if (await isUsed()) return;
      await this.#remove(digest);
      if (staged !== undefined && await isUsed()) await this.#put(staged);
    };
    const fail = async (error: unknown): Promise<never> => {
      if (staged !== undefined) await discard().catch(() => {});
      throw error; // the first fault matters
    };
    for (;;) {
      if (staged !== undefined) await this.#put(staged); // unlocked, because it may take long
      let isLocked = false;
      const changed = await this.#engine.exclusively(async () => {
        isLocked = true;
        if (staged !== undefined) {
          const found = await this.compare(staged);
          if (found.state === "missing") return undefined;
          if (found.state === "different") throw new StorageError("bucket", found.reason);
        }
        const result = await commit().catch(fail);
        // Once committed, it is published, even if the store fails now.
        await (staged === undefined ? discard() : this.#put(staged).catch(() => {}));
        return { result };
      }).catch((error) => isLocked ? Promise.reject(error) : fail(error));
      if (changed !== undefined) return changed.result;
      // Otherwise it was removed when its last item was unpublished.
    }
  }

  async compare(content: ContentReference): Promise<Comparison> {
    const fields = conditionOf(content);
    const response = await this.#client.request("HEAD", this.#objectKeyOf(content), { fields });
    if (response.status === 404) {
      return { state: "missing", reason: `${nameOf(content)} is missing` };
    }
    const fault = faultIn(response, content);
    if (fault === undefined) return { state: "same" };
    if (fault instanceof ReplacedError) return { state: "different", reason: fault.fault };
    throw fault;
  }

  async *list(): AsyncGenerator<string> {
    const names = (key: string) => listNames(this.#client, this.#ownKey(key), this.#location);
    for await (const folder of names("")) {
      if (!/^[0-9a-f]{2}\/$/.test(folder)) continue; // not ours
      for await (const name of names(folder + folder.slice(0, 2))) {
        if (/^[0-9a-f]{64}$/.test(name)) yield name;
      }
    }
  }

  hold<T>(action: () => Promise<T>): Promise<T> {
    return this.#engine.exclusively(action);
  }

  close(): Promise<void> {
    this.#client.close();
    return Promise.resolve();
  }

  async #download(content: ExpectedContent, range?: ByteRange): Promise<Download> {
    const response = await this.#client.download(this.#objectKeyOf(content), {
      ...conditionOf(content),
      ...(range === undefined ? {} : { Range: `bytes=${range.first}-${range.last}` }),
    });
    const fault = faultIn(response, content, range);
    if (fault === undefined) return response;
    response.end();
    throw fault;
  }

  /** Uploads content, unless it is present. */
  async #put(staged: StagedSource): Promise<void> {
    if ((await this.compare(staged)).state === "same") return;
    const { digest, source } = staged;
    const fields = { "X-Amz-Content-Sha256": digest };
    const { url, headers } = await this.#client.sign("PUT", this.#objectKeyOf(staged), fields);
    const { upload } = await import("./upload.ts"); // not needed to serve
    const response = await upload({ url, headers, content: staged, source });
    if (response.status !== 200) throw this.#fault(`rejects content ${digest}`, response);
  }

  async #remove(digest: string): Promise<void> {
    const key = this.#objectKeyOf({ digest });
    const response = await this.#client.request("DELETE", key);
    if (response.status === 204 || response.status === 200 || response.status === 404) return;
    const location = locationOf(key, this.#settings);
    throw new StorageError(
      "bucket",
      `${location} is no longer used by any item, and cannot be removed${reasonIn(response)}`,
    );
  }

  #objectKeyOf({ digest = "", location }: Pick<ExpectedContent, "digest" | "location">): string {
    if (location === undefined) return this.#ownKey(`${digest.slice(0, 2)}/${digest}`);
    const key = objectKeyIn(location, this.#settings);
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
    const reason = response === undefined ? "" : reasonIn(response);
    return new StorageError("bucket", `${this.#location} ${what}${reason}`);
  }

  /** For messages. */
  get #location(): string {
    return `${JSON.stringify(locationOf(this.#settings.prefix, this.#settings))} (CONTENT)`;
  }
}

function lengthOf({ length }: ExpectedContent, range: ByteRange | undefined): number {
  return range === undefined ? length : range.last - range.first + 1;
}
