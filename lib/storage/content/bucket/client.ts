/** A client of an S3-compatible store. Its requests are signed, limited in number, and time out. */

import { delay } from "@std/async/delay";
import { AwsV4Signer } from "aws4fetch";
import { type Patience, waitFor } from "../../../async/abort.ts";
import { Semaphore } from "../../../async/semaphore.ts";
import { StorageError } from "../../../errors/storage_error.ts";
import { SingleReadError } from "../../errors.ts";
import type { BucketSettings } from "../content_place.ts";
import { urlOf } from "./address.ts";

/** Milliseconds before a failed request is retried once. */
const RETRY_MS = 200;

/**
 * The maximum number of downloads at once. Each holds a connection for as long as its client reads.
 */
const MAX_DOWNLOADS = 256;

/** The maximum number of other requests at once. Downloads must not delay them. */
const MAX_REQUESTS = 128;

interface RequestOptions {
  readonly fields?: Readonly<Record<string, string>>;
  readonly text?: string;
  /** Names and values, not encoded. */
  readonly query?: Readonly<Record<string, string>>;
}

export interface StoreResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A download. The caller must end it. It has a text only if it is an error. */
export interface Download extends StoreResponse {
  /** Reads the whole body, within the timeout of the request. */
  readonly bytes: () => Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the body as a stream instead, without a timeout. */
  readonly stream: () => ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Releases the connection, and closes it if the body was not read to its end. */
  readonly end: () => void;
}

export class StoreClient {
  readonly #settings: BucketSettings;
  readonly #onWait: Patience["onWait"];
  // HTTP/2 would put all downloads on one connection, where a slow one blocks the others.
  readonly #http = Deno.createHttpClient({
    http2: false,
    poolMaxIdlePerHost: MAX_REQUESTS,
    poolIdleTimeout: 20_000, // milliseconds
  });
  readonly #downloads = new Semaphore(MAX_DOWNLOADS);
  readonly #requests = new Semaphore(MAX_REQUESTS);
  /** Keys derived from the secret, one per day. */
  readonly #signingKeys = new Map<string, ArrayBuffer>();
  #isClosed = false;

  constructor(settings: BucketSettings, { onWait }: Patience) {
    this.#settings = settings;
    this.#onWait = onWait;
  }

  async request(method: string, key: string, options: RequestOptions = {}): Promise<StoreResponse> {
    const { response, signal, end } = await this.#send(this.#requests, method, key, options);
    try {
      const text = await contentText(response, signal);
      return { status: response.status, headers: response.headers, text };
    } finally {
      end();
    }
  }

  async download(key: string, fields: Readonly<Record<string, string>>): Promise<Download> {
    return await this.#download(this.#downloads, key, fields);
  }

  /** Downloads little or nothing of an object. Other downloads do not delay it. */
  async peek(key: string, fields: Readonly<Record<string, string>>): Promise<Download> {
    return await this.#download(this.#requests, key, fields);
  }

  async #download(
    semaphore: Semaphore,
    key: string,
    fields: Readonly<Record<string, string>>,
  ): Promise<Download> {
    const sent = await this.#send(semaphore, "GET", key, { fields });
    const { response, signal, timer, end } = sent;
    const { status, headers } = response;
    const stream = () => {
      clearTimeout(timer);
      return response.body ?? new Blob().stream();
    };
    try {
      const text = status === 200 || status === 206 ? "" : await contentText(response, signal);
      return { status, headers, text, bytes: () => response.bytes(), stream, end };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Returns the URL of an object, and the signed headers of a request for it. */
  async sign(
    method: string,
    key: string,
    fields: Readonly<Record<string, string>> = {},
    query: Readonly<Record<string, string>> = {},
  ): Promise<{ url: URL; headers: Headers }> {
    const { accessKeyId, secretAccessKey, sessionToken, region } = this.#settings;
    const url = urlOf(this.#settings, key, query);
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: fields,
      service: "s3",
      region,
      accessKeyId,
      secretAccessKey,
      cache: this.#signingKeys,
      ...(sessionToken === undefined ? {} : { sessionToken }),
    });
    const { headers } = await signer.sign();
    return { url, headers };
  }

  close(): void {
    if (!this.#isClosed) this.#http.close();
    this.#isClosed = true;
  }

  async #send(semaphore: Semaphore, method: string, key: string, options: RequestOptions) {
    if (this.#isClosed) throw new StorageError("bucket", "closed");
    const { timeoutMs } = this.#settings;
    const controller = new AbortController();
    const { signal } = controller;
    const fault = `no answer from the store within ${timeoutMs / 1_000} s`;
    const timer = setTimeout(() => controller.abort(new StorageError("bucket", fault)), timeoutMs);
    let release: (() => void) | undefined;
    const end = () => {
      clearTimeout(timer);
      controller.abort();
      release?.();
      release = undefined;
    };
    try {
      release = await semaphore.acquire(signal).catch(() => {
        throw new SingleReadError("bucket", "all connections to the store are in use");
      });
      const fetching = this.#fetch(method, key, options, signal);
      const response = await waitFor("the store (CONTENT)", fetching, { onWait: this.#onWait });
      return { response, signal, timer, end };
    } catch (error) {
      end();
      throw error;
    }
  }

  async #fetch(
    method: string,
    key: string,
    { fields = {}, text, query }: RequestOptions,
    signal: AbortSignal,
  ): Promise<Response> {
    for (let isLast = false;; isLast = true) {
      const { url, headers } = await this.sign(method, key, {}, query);
      // Headers that proxies may change are not signed. `identity` asks for content as published.
      const all = { ...Object.fromEntries(headers), "Accept-Encoding": "identity", ...fields };
      try {
        const response = await fetch(url, {
          method,
          headers: all,
          body: text ?? null,
          redirect: "manual",
          signal,
          client: this.#http,
        });
        const isTemporary = [500, 502, 503, 504].includes(response.status);
        if (isLast || !isTemporary) return response;
        await response.body?.cancel();
      } catch (cause) {
        if (signal.aborted || isLast) {
          signal.throwIfAborted();
          const { cause: reason = cause } = cause as Error; // fetch's own message says nothing
          throw new StorageError("bucket", "the store cannot be reached", {
            kind: "unreachable", // the reason has ports and keys
            cause: reason,
          });
        }
      }
      await delay(RETRY_MS);
    }
  }
}

async function contentText(response: Response, signal: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    signal.throwIfAborted();
    throw new StorageError("bucket", "the store's answer was cut off", { cause });
  }
}
