/**
 * Sending content to the store: one PUT with its length, streamed. By Node's client, because Deno's
 * `fetch` sends every stream chunked (2.9.6), which S3 does not take.
 */

import { createHash } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import { type ContentReference, type Source, SourceChangedError } from "../content.ts";
import { StorageError } from "../storage.ts";
import type { StoreResponse } from "./client.ts";

/** Milliseconds for which the store may take nothing more of what is sent. */
const STALL = 30_000;

/** Milliseconds that the store has to answer, once it has everything. */
const SETTLING = 120_000;

/** Milliseconds within which it has to accept a connection. */
const CONNECTING = 10_000;

/** Where to send what. */
export interface Upload {
  readonly url: URL;
  /** Signed for the digest of the content. */
  readonly headers: Headers;
  readonly content: Pick<ContentReference, "digest" | "length">;
  readonly source: Source;
  /** Milliseconds for which the store may take nothing. */
  readonly stall?: number;
}

/**
 * Sends content, and gives the store's answer. Unless every byte is as it was, the last ones are not
 * sent, and the store keeps nothing.
 *
 * @throws {SourceChangedError} When the source gives something else than when it was hashed.
 * @throws {StorageError} When the store cannot be reached, or takes no more.
 * @throws What the source throws, or what aborted its signal.
 */
export async function upload(
  { url, headers, content, source, stall = STALL }: Upload,
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
      if (!await exchange.send(chunk)) break; // it has answered already
    }
    return await exchange.finish();
  } finally {
    exchange.end();
  }
}

/** One request of Node's, as promises that are rejected by whatever ends it. */
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
    this.#failed.promise.catch(() => {}); // told to whoever waits
    request.on("response", (response) => {
      this.#response = response;
      this.#responded.resolve(response);
    });
    request.on("error", (cause) => {
      this.#fail(new StorageError("bucket", "the store cannot be reached", { cause }));
    });
    signal?.addEventListener("abort", this.#abort);
    this.#limit(CONNECTING);
  }

  /** Sends a chunk, and waits until there is room for the next. Gives whether more is wanted. */
  async send(chunk: Uint8Array): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#response !== undefined) return false;
    this.#request.write(chunk, () => resolve());
    await Promise.race([promise, this.#responded.promise, this.#failed.promise]);
    this.#limit(this.#stall);
    return this.#response === undefined;
  }

  /** Ends the request, and gives the answer. */
  async finish(): Promise<Pick<StoreResponse, "status" | "text">> {
    this.#limit(SETTLING);
    if (this.#response === undefined) this.#request.end();
    const response = await Promise.race([this.#responded.promise, this.#failed.promise]);
    let text = "";
    const reading = async () => {
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
    };
    await Promise.race([reading(), this.#failed.promise]);
    return { status: response.statusCode ?? 0, text };
  }

  /** Breaks the connection, should it still be there. */
  end(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#request.destroy();
  }

  readonly #abort = () => this.#fail(this.#signal?.reason);

  #limit(time: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#fail(new StorageError("bucket", `the store took nothing for ${time / 1_000} s`));
    }, time);
  }

  #fail(error: unknown): void {
    this.#failed.reject(error);
    this.#request.destroy();
  }
}

/** Passes chunks on as long as they are what was hashed before; the last one once all of it is. */
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
    last = chunk.slice(); // the source may use its buffer again
    hash.update(last);
  }
  if (left !== 0 || hash.digest("hex") !== digest) {
    throw new SourceChangedError("The content is not what it was when it was hashed");
  }
  yield last;
}
