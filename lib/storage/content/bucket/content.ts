/**
 * Content in a bucket of an S3-compatible store: the bytes of published items, each stored once
 * under its digest, or wherever it was published in place.
 *
 *     PREFIX/ab/abcd…      content, named by its SHA-256
 *     PREFIX/media-head    contains the store's identifier
 *
 * An object exists completely or not at all. Objects are never deleted, because that would take a
 * lock that all publishers share. Unpublishing, and a publisher that is killed, may leave an object
 * behind that no item uses.
 */

import { unescape } from "@std/html/entities";
import type { Patience } from "../../../async/abort.ts";
import { RefusedError } from "../../../errors/refused_error.ts";
import { StorageError } from "../../../errors/storage_error.ts";
import type { ByteRange } from "../../../http/byte_range.ts";
import type { Body } from "../../../http/outcome.ts";
import { quoted } from "../../../input/printable.ts";
import type { BucketSettings } from "../content_place.ts";
import {
  type Comparison,
  type Content,
  type ExistingContent,
  MAX_AT_ONCE_BYTES,
  type ObjectStore,
  type Source,
} from "../content_store.ts";
import { ReplacedError, SingleReadError } from "../../errors.ts";
import { type ContentReference, type FailedRead, MAX_LOCATION, MAX_STATED } from "../../item.ts";
import type { OnFault } from "../../storage.ts";
import { locationOf, objectKeyIn, readingOf } from "./address.ts";
import { type Download, StoreClient } from "./client.ts";
import {
  codeIn,
  conditionOf,
  type ExpectedContent,
  faultIn,
  lengthIn,
  nameOf,
  readFault,
  reasonIn,
} from "./responses.ts";
import { contentOf, readAtOnce } from "./stream.ts";

/** What is read of an object to check it. */
const FIRST_BYTE: FailedRead = { range: { first: 0, last: 0 } };

/** The name of the object with the store's identifier, under the prefix. */
const ID_OBJECT = "media-head";

export class BucketContent implements ObjectStore {
  readonly kind = "bucket";
  readonly maxLength = 5 * 2 ** 30; // bytes in a PUT
  readonly #settings: BucketSettings;
  readonly #client: StoreClient;

  constructor(settings: BucketSettings, patience: Patience = {}) {
    this.#settings = settings;
    this.#client = new StoreClient(settings, patience);
  }

  locationOf(content: Pick<ContentReference, "digest" | "location">): string {
    return locationOf(this.#objectKeyOf(content), this.#settings);
  }

  async id(): Promise<string | undefined> {
    const response = await this.#client.request("GET", this.#keyUnderPrefix(ID_OBJECT));
    if (response.status === 200) return response.text;
    if (response.status === 404 && codeIn(response) !== "NoSuchBucket") return undefined;
    throw this.#fault("cannot be read", response, readingOf(this.#settings, codeIn(response)));
  }

  /**
   * Reads nothing after writing: other processes may write the same object at that moment, and some
   * stores answer 404 while an object is being replaced.
   */
  async create(id: string): Promise<void> {
    const found = await this.id();
    if (found) return this.#require(id, found);
    const response = await this.#client.request("PUT", this.#keyUnderPrefix(ID_OBJECT), {
      text: id,
    });
    if (response.status !== 200) throw this.#fault("cannot be written to", response);
  }

  async check(id: string): Promise<void> {
    this.#require(id, await this.id());
  }

  async open(content: ContentReference, range?: ByteRange, onFault?: OnFault): Promise<Body> {
    const length = lengthOf(content, range);
    const download = await this.#download(content, range);
    if (length <= MAX_AT_ONCE_BYTES) return await readAtOnce(download, length);
    return contentOf(download, { length }, onFault);
  }

  async statObject(location: string): Promise<ExistingContent> {
    const refusal = (why: string) => new RefusedError(`${quoted(location)} ${why}`, { kind: why });
    const key = objectKeyIn(location, this.#settings);
    if (key === undefined || location.length > MAX_LOCATION) {
      throw refusal("is not an object in the bucket in CONTENT");
    }
    if (this.#isManaged(key)) throw refusal("is content that was copied here");
    const response = await this.#peek({ location }, FIRST_BYTE.range);
    response.end();
    const { status, headers } = response;
    if (status === 404) throw refusal("does not exist");
    if (status === 403) throw refusal(`cannot be read${reasonIn(response)}`);
    if (status === 416) throw refusal("is empty"); // it has no first byte
    if (status !== 200 && status !== 206) throw readFault(quoted(location), response);
    const length = lengthIn(response);
    const validator = headers.get("etag") ?? "";
    const encoding = headers.get("content-encoding") ?? "";
    if (length === undefined) throw refusal("cannot be published: the store states no length");
    if (length === 0) throw refusal("is empty");
    if (!/^(aws-chunked|identity)?$/.test(encoding)) {
      throw refusal(`is stored with Content-Encoding: ${encoding}`);
    }
    if (!/^"[ -~]+"$/.test(validator) || validator.length > MAX_STATED) {
      throw refusal("has no strong ETag, without which a replacement would go unnoticed");
    }
    const object = { location, length, validator };
    const open = async (range?: ByteRange) => {
      return contentOf(await this.#download(object, range), { length: lengthOf(object, range) });
    };
    return { ...object, open };
  }

  async change<T>(content: Content, commit: () => Promise<T>, source?: Source): Promise<T> {
    if (source !== undefined) await this.#put(content, source);
    return await commit();
  }

  async compare(content: ContentReference, read = FIRST_BYTE): Promise<Comparison> {
    const { range } = read;
    const response = await this.#peek(content, range);
    try {
      const { status } = response;
      if (status === 404) {
        return { state: "missing", reason: `${nameOf(content)} is missing`, kind: "missing" };
      }
      // If the store refuses everything, reading the identifier throws.
      if (![200, 206, 412, 416].includes(status)) await this.id();
      const sent = status === 200 ? undefined : range; // a store may ignore a range
      const fault = faultIn(response, content, sent) ??
        (sent === range ? await readFaultOf(response, lengthOf(content, range)) : undefined);
      if (fault === undefined) return { state: "same" };
      const state = fault instanceof ReplacedError ? "different" : "failed";
      return { state, reason: fault.fault, kind: fault.kind };
    } finally {
      response.end();
    }
  }

  async *list(): AsyncGenerator<string> {
    const names = (key: string) =>
      listNames(this.#client, this.#keyUnderPrefix(key), this.#location);
    for await (const folder of names("")) {
      if (!/^[0-9a-f]{2}\/$/.test(folder)) continue; // not ours
      for await (const name of names(folder + folder.slice(0, 2))) {
        if (/^[0-9a-f]{64}$/.test(name)) yield name;
      }
    }
  }

  withoutRemovals<T>(action: () => Promise<T>): Promise<T> {
    return action(); // because nothing is ever removed
  }

  close(): Promise<void> {
    this.#client.close();
    return Promise.resolve();
  }

  async #download(content: ExpectedContent, range?: ByteRange): Promise<Download> {
    const key = this.#objectKeyOf(content);
    const response = await this.#client.download(key, fieldsOf(content, range));
    const isIgnored = range !== undefined && response.status === 200;
    const fault = isIgnored
      ? new SingleReadError("bucket", `the store ignores the range of ${nameOf(content)}`, {
        kind: "no range",
      })
      : faultIn(response, content, range);
    if (fault === undefined) return response;
    response.end();
    throw fault;
  }

  /**
   * Begins a GET that is as a client's, but is not to be read to the end of long content. If it
   * gives a range and not the length of the object, begins one without a range.
   */
  async #peek(
    content: Partial<ExpectedContent>,
    range: ByteRange | undefined,
  ): Promise<Download> {
    const key = this.#objectKeyOf(content);
    const response = await this.#client.peek(key, fieldsOf(content, range));
    if (response.status !== 206 || lengthIn(response) !== undefined) return response;
    response.end();
    return await this.#client.peek(key, fieldsOf(content, undefined));
  }

  /** Uploads content, unless it is already stored. */
  async #put({ digest, length }: Content, source: Source): Promise<void> {
    const stored = await this.compare({ digest, length });
    if (stored.state === "same") return;
    if (stored.state === "failed") throw new StorageError("bucket", stored.reason);
    const key = this.#objectKeyOf({ digest });
    const { url, headers } = await this.#client.sign("PUT", key, {
      "X-Amz-Content-Sha256": digest,
    });
    const { upload } = await import("./upload.ts"); // not needed to serve
    const response = await upload({ url, headers, length, source });
    if (response.status !== 200) throw this.#fault(`rejects content ${digest}`, response);
  }

  #objectKeyOf({ digest = "", location }: Pick<ExpectedContent, "digest" | "location">): string {
    if (location === undefined) return this.#keyUnderPrefix(`${digest.slice(0, 2)}/${digest}`);
    const key = objectKeyIn(location, this.#settings);
    if (key !== undefined) return key;
    throw new StorageError("bucket", `content ${digest} is in another bucket: ${location}`, {
      kind: "in another bucket",
    });
  }

  #keyUnderPrefix(name: string): string {
    const { prefix } = this.#settings;
    return prefix === "" ? name : `${prefix}/${name}`;
  }

  /** Returns whether a key is that of an object written by this store. */
  #isManaged(key: string): boolean {
    const name = key.startsWith(this.#keyUnderPrefix(""))
      ? key.slice(this.#keyUnderPrefix("").length)
      : "";
    return name === ID_OBJECT || /^[0-9a-f]{2}\/[0-9a-f]{64}$/.test(name);
  }

  #require(id: string, found: string | undefined): void {
    if (found === id) return;
    throw this.#fault("is not the place with the content of this catalogue");
  }

  /** Returns an error about the store as a whole. */
  #fault(what: string, response?: Parameters<typeof reasonIn>[0], remedy = ""): StorageError {
    const reason = response === undefined ? "" : reasonIn(response);
    return new StorageError("bucket", `${this.#location} ${what}${reason}${remedy}`);
  }

  /** For messages. */
  get #location(): string {
    return `${JSON.stringify(locationOf(this.#settings.prefix, this.#settings))} (CONTENT)`;
  }
}

/** Returns the request fields of a GET that fails if the object was replaced. */
function fieldsOf(
  content: Pick<ExpectedContent, "validator">,
  range: ByteRange | undefined,
): Record<string, string> {
  const condition = conditionOf(content);
  if (range === undefined) return condition;
  return { ...condition, Range: `bytes=${range.first}-${range.last}` };
}

/** Returns the fault of reading content, if it is short. */
async function readFaultOf(
  download: Download,
  length: number,
): Promise<StorageError | undefined> {
  if (length > MAX_AT_ONCE_BYTES) return undefined;
  return await readAtOnce(download, length).then(() => undefined, (fault: StorageError) => fault);
}

function lengthOf({ length }: ExpectedContent, range: ByteRange | undefined): number {
  return range === undefined ? length : range.last - range.first + 1;
}

/** A key, or a common prefix. */
const KEY = /<(?:Key|CommonPrefixes>\s*<Prefix)>([^<]*)</g;

/**
 * Lists a bucket page by page. Yields the last part of each key with a prefix; keys with another
 * slash after the prefix give only their folder, with that slash.
 *
 * @param location The name of the place in messages.
 */
async function* listNames(
  client: StoreClient,
  prefix: string,
  location: string,
): AsyncGenerator<string> {
  const query = { "delimiter": "/", "encoding-type": "url", "list-type": "2", prefix };
  for (let next: Record<string, string> | undefined = {}; next !== undefined;) {
    const response = await client.request("GET", "", { query: { ...next, ...query } });
    const { status, text } = response;
    if (status !== 200 || !/<\/ListBucketResult>\s*$/.test(text)) {
      throw new StorageError("bucket", `${location} cannot be listed${reasonIn(response)}`);
    }
    for (const [, key = ""] of text.matchAll(KEY)) {
      yield key.replaceAll(/%2F/gi, "/").replace(/.*\/(?=.)/s, "");
    }
    const token = /<NextContinuationToken>([^<]+)</.exec(text)?.[1];
    next = token === undefined ? undefined : { "continuation-token": unescape(token) };
  }
}
