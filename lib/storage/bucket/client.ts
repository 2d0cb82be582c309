/**
 * Requests to an S3-compatible store: signed, so many at a time, and given up when no answer comes.
 */

import { AwsV4Signer } from "aws4fetch";
import type { BucketSettings } from "../content.ts";
import { StorageError } from "../storage.ts";
import { urlOf } from "./address.ts";
import { Semaphore } from "./semaphore.ts";

/**
 * Milliseconds until a connection is free and the fields of the answer are there, so that clients
 * are told within five seconds that they are not.
 */
const TIMEOUT = 4_500;

/** Milliseconds before a request that failed is sent once more. */
const RETRY_DELAY = 200;

/** Statuses that may be over when the request is sent once more. */
const TEMPORARY = [500, 502, 503, 504];

/** Downloads at once, each on a connection of its own, which it holds as long as its client reads. */
const DOWNLOADS = 256;

/** Other requests at once, which downloads must not hold up. */
const REQUESTS = 32;

/** Milliseconds for which a connection is kept that nobody uses. */
const IDLE = 20_000;

/** Characters read of an answer that is no download. */
const MAX_TEXT = 4_096;

/** What is sent besides the method and the key. */
export interface RequestOptions {
  readonly fields?: Readonly<Record<string, string>>;
  /** A text to store. */
  readonly text?: string;
  /** Names and values, not encoded. */
  readonly query?: Readonly<Record<string, string>>;
  /** Milliseconds until an answer has to be there. */
  readonly timeout?: number;
  /** Characters that are read of the answer, unless it is a download. */
  readonly maxText?: number;
}

/** An answer of the store. */
export interface StoreResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of what it says. */
  readonly text: string;
}

/** Content that comes in. To be ended in any case. */
export interface Download extends Omit<StoreResponse, "text"> {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Lets go of the connection, and breaks it when there is more to come. */
  readonly end: () => void;
}

/** Sends requests about the objects of a bucket. */
export class StoreClient {
  readonly #settings: BucketSettings;
  // HTTP/2 would put all downloads on one connection, where one that is slow holds up the others.
  readonly #http = Deno.createHttpClient({
    http2: false,
    poolMaxIdlePerHost: REQUESTS,
    poolIdleTimeout: IDLE,
  });
  readonly #downloads = new Semaphore(DOWNLOADS);
  readonly #requests = new Semaphore(REQUESTS);
  /** Keys derived from the secret, one a day. */
  readonly #signingKeys = new Map<string, ArrayBuffer>();
  #isReachable = true;
  #isClosed = false;

  constructor(settings: BucketSettings) {
    this.#settings = settings;
  }

  /** Whether the store gave any answer when it was asked last. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  /** Asks something with a short answer. */
  async request(method: string, key: string, options: RequestOptions = {}): Promise<StoreResponse> {
    const { response, deadline, end } = await this.#send(this.#requests, method, key, options);
    try {
      const text = await beginningOf(response, deadline, options.maxText);
      return { status: response.status, headers: response.headers, text };
    } finally {
      end();
    }
  }

  /** Asks for content; what the store says instead is a short answer. */
  async download(
    key: string,
    fields: Readonly<Record<string, string>>,
  ): Promise<Download | StoreResponse> {
    const sent = await this.#send(this.#downloads, "GET", key, { fields });
    const { response, deadline, end } = sent;
    const { status, headers } = response;
    if (status === 200 || status === 206) {
      deadline.clear();
      return { status, headers, body: response.body ?? new Blob().stream(), end };
    }
    try {
      return { status, headers, text: await beginningOf(response, deadline) };
    } finally {
      end();
    }
  }

  /** The URL of an object, and the fields that sign a request to it. */
  async sign(
    method: string,
    key: string,
    fields: Readonly<Record<string, string>> = {},
    query: Readonly<Record<string, string>> = {},
  ): Promise<{ url: URL; headers: Headers }> {
    const { accessKeyId, secretAccessKey, sessionToken, region } = this.#settings;
    const url = urlOf(this.#settings, key, query);
    const signer = new AwsV4Signer({
      ...{ method, url: url.href, headers: fields, service: "s3", region, accessKeyId },
      ...{ secretAccessKey, cache: this.#signingKeys },
      ...(sessionToken === undefined ? {} : { sessionToken }),
    });
    const { headers } = await signer.sign();
    return { url, headers };
  }

  /** Closes the connections. */
  close(): void {
    if (!this.#isClosed) this.#http.close();
    this.#isClosed = true;
  }

  async #send(semaphore: Semaphore, method: string, key: string, options: RequestOptions) {
    if (this.#isClosed) throw new StorageError("bucket", "closed");
    const deadline = new Deadline(options.timeout ?? TIMEOUT);
    const { signal } = deadline;
    let release: (() => void) | undefined;
    const end = () => {
      deadline.end();
      release?.();
      release = undefined;
    };
    try {
      release = await semaphore.acquire(signal).catch(() => {
        throw new StorageError("bucket", "all connections to the store are in use");
      });
      const response = await this.#fetch(method, key, options, signal);
      return { response, deadline, end };
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
      // What proxies on the way may change is not signed. Content is wanted as it was published.
      const all = { ...Object.fromEntries(headers), "Accept-Encoding": "identity", ...fields };
      const request = { method, headers: all, body: text ?? null, redirect: "manual" } as const;
      try {
        const response = await fetch(url, { ...request, signal, client: this.#http });
        this.#isReachable = true;
        if (isLast || !TEMPORARY.includes(response.status)) return response;
        await response.body?.cancel();
      } catch (cause) {
        if (signal.aborted || isLast) {
          this.#isReachable = false;
          signal.throwIfAborted();
          const { cause: reason = cause } = cause as Error; // what fetch says itself says nothing
          throw new StorageError("bucket", "the store cannot be reached", { cause: reason });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
    }
  }
}

/** A limit of time for all that a request takes until its content comes. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;

  /** @param limit Milliseconds. */
  constructor(limit: number) {
    this.#timer = setTimeout(() => {
      const fault = `no answer of the store within ${limit / 1_000} s`;
      this.#controller.abort(new StorageError("bucket", fault));
    }, limit);
  }

  /** Aborted with a {@linkcode StorageError} when the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Limits it no longer. */
  clear(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the request. */
  end(): void {
    this.clear();
    this.#controller.abort();
  }
}

/** Reads the beginning of a short answer. */
async function beginningOf(
  response: Response,
  { signal }: Deadline,
  maxText = MAX_TEXT,
): Promise<string> {
  let text = "";
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.length > maxText) break; // which cancels the rest
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new StorageError("bucket", "the store broke off its answer", { cause });
  }
  return text;
}
