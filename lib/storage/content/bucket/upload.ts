/**
 * Uploading content in one streamed PUT of known length. Uses Node's client, because Deno's `fetch`
 * (2.9.6) sends every stream chunked, which S3 rejects.
 */

import { createHash } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { ContentReference } from "../../item.ts";
import { type Source, SourceChangedError } from "../content_store.ts";
import { StorageError } from "../../errors.ts";
import type { StoreResponse } from "./client.ts";

/** Milliseconds for which the store may accept no data. */
const STALL_TIMEOUT_MS = 30_000;

/** Milliseconds for the store's answer after the last byte. */
const ANSWER_TIMEOUT_MS = 120_000;

/** The connection timeout, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** What to upload, and where to. */
export interface Upload {
  readonly url: URL;
  /** Signed with the digest of the content. */
  readonly headers: Headers;
  readonly content: Pick<ContentReference, "digest" | "length">;
  readonly source: Source;
  /** Overrides {@linkcode STALL_TIMEOUT_MS}. */
  readonly stall?: number;
}

/**
 * Uploads content, and returns the store's answer. If the source has changed since it was hashed,
 * its last bytes are not sent, so the store keeps nothing.
 *
 * @throws {SourceChangedError} When the source has changed since it was hashed.
 * @throws {StorageError} When the store cannot be reached, or stalls.
 * @throws What the source throws, or its signal's abort reason.
 */
export async function upload(
  { url, headers, content, source, stall = STALL_TIMEOUT_MS }: Upload,
): Promise<Pick<StoreResponse, "status" | "text">> {
  const { request } = url.protocol === "https:"
    ? await import("node:https")
    : await import("node:http");
  source.signal?.throwIfAborted();
  const fields = { ...Object.fromEntries(headers), "Content-Length": String(content.length) };
  const sending = request(url, { method: "PUT", headers: fields, agent: false });
  const exchange = new Exchange(sending, stall, source.signal);
  try {
    for await (const chunk of unchanged(source.read("sending"), content)) {
      if (!await exchange.send(chunk)) break; // it has already answered
    }
    return await exchange.finish();
  } finally {
    exchange.end();
  }
}

/** A request of Node's client as promises, which reject when it fails for any reason. */
class Exchange {
  readonly #request: ClientRequest;
  readonly #stall: number;
  readonly #signal: AbortSignal | undefined;
  readonly #failed = Promise.withResolvers<never>();
  readonly #responded = Promise.withResolvers<IncomingMessage>();
  #response: IncomingMessage | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(request: ClientRequest, stall: number, signal: AbortSignal | undefined) {
    this.#request = request;
    this.#stall = stall;
    this.#signal = signal;
    this.#failed.promise.catch(() => {}); // reported where it is awaited
    request.on("response", (response) => {
      this.#response = response;
      this.#responded.resolve(response);
    });
    request.on("error", (cause) => {
      this.#fail(new StorageError("bucket", "the store cannot be reached", { cause }));
    });
    signal?.addEventListener("abort", this.#abort);
    this.#limit(CONNECT_TIMEOUT_MS);
  }

  /** Sends a chunk, and waits until it is flushed. Returns whether to send more. */
  async send(chunk: Uint8Array): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#response !== undefined) return false;
    this.#request.write(chunk, () => resolve());
    await Promise.race([promise, this.#responded.promise, this.#failed.promise]);
    this.#limit(this.#stall);
    return this.#response === undefined;
  }

  /** Ends the request, and returns the answer. */
  async finish(): Promise<Pick<StoreResponse, "status" | "text">> {
    this.#limit(ANSWER_TIMEOUT_MS);
    if (this.#response === undefined) this.#request.end();
    const response = await Promise.race([this.#responded.promise, this.#failed.promise]);
    let text = "";
    const reading = async () => {
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
    };
    await Promise.race([reading(), this.#failed.promise]);
    return { status: response.statusCode ?? 0, text };
  }

  /** Closes the connection, if it is still open. */
  end(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#request.destroy();
  }

  readonly #abort = () => this.#fail(this.#signal?.reason);

  #limit(time: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#fail(new StorageError("bucket", `the store accepted no data for ${time / 1_000} s`));
    }, time);
  }

  #fail(error: unknown): void {
    this.#failed.reject(error);
    this.#request.destroy();
  }
}

/** Passes chunks on, the last one only if all of them match the digest. */
async function* unchanged(
  chunks: AsyncIterable<Uint8Array>,
  { digest, length }: Pick<ContentReference, "digest" | "length">,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let left = length;
  let last = new Uint8Array();
  for await (const chunk of chunks) {
    left -= chunk.length;
    if (left < 0) break;
    if (last.length > 0) yield last;
    last = chunk.slice(); // the source may reuse its buffer
    hash.update(last);
  }
  if (left !== 0 || hash.digest("hex") !== digest) {
    throw new SourceChangedError("The content changed after it was hashed");
  }
  yield last;
}
