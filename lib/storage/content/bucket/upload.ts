/**
 * Uploading content in one streamed PUT of known length. Uses Node's client, because Deno's `fetch`
 * (2.9.6) sends every stream chunked, and S3 rejects that.
 */

import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../../async/abort.ts";
import { fulfilledWithin } from "../../../async/deadline.ts";
import { StorageError } from "../../../errors/storage_error.ts";
import type { Source } from "../content_store.ts";
import type { StoreResponse } from "./client.ts";

/** Milliseconds to wait for the store's response after the last byte. */
const RESPONSE_TIMEOUT_MS = 120_000;

interface Upload {
  readonly url: URL;
  /** Signed with the digest of the content. */
  readonly headers: Headers;
  /** Bytes of the content. */
  readonly length: number;
  readonly source: Source;
  /** Milliseconds for which the store may accept no data. */
  readonly stallTimeoutMs?: number;
}

/**
 * Uploads content, and returns the store's response. The store compares the content with the signed
 * digest, and stores nothing that differs.
 *
 * @throws {StorageError} When the store cannot be reached, or stalls.
 * @throws The error of the source, or its signal's abort reason.
 */
export async function upload(
  { url, headers, length, source, stallTimeoutMs = 30_000 }: Upload,
): Promise<StoreResponse> {
  const { default: http } = await import("node:http");
  const { request } = url.protocol === "https:" ? await import("node:https") : http;
  source.signal?.throwIfAborted();
  useProxy(http);
  const fields = {
    ...Object.fromEntries(headers),
    "Connection": "close",
    "Content-Length": String(length),
  };
  const received = Promise.withResolvers<IncomingMessage>();
  let response: IncomingMessage | undefined;
  received.promise.then((message) => response = message, () => {}); // reported where it is awaited
  const sending = request(url, { method: "PUT", headers: fields }, received.resolve);
  sending.on("error", (cause) => {
    received.reject(new StorageError("bucket", "the store cannot be reached", { cause }));
  });
  const settle = async (limit: number, step: Promise<unknown>) => {
    if (await fulfilledWithin(limit, unlessAborted(step, source.signal))) return;
    throw new StorageError("bucket", `the store accepted no data for ${limit / 1_000} s`);
  };
  try {
    for await (const chunk of source.read("sending")) {
      const flushed = new Promise<void>((resolve) => {
        sending.write(chunk, (error) => error ?? resolve()); // an error is also emitted
      });
      await settle(stallTimeoutMs, Promise.race([flushed, received.promise]));
      if (response !== undefined) break;
    }
    if (response === undefined) sending.end();
    await settle(RESPONSE_TIMEOUT_MS, received.promise);
    const message = await received.promise;
    const reading = Array.fromAsync<string>(message.setEncoding("utf8"));
    await settle(RESPONSE_TIMEOUT_MS, reading);
    const headers = new Headers(
      Object.entries(message.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value])
      ),
    );
    return { status: message.statusCode ?? 0, headers, text: (await reading).join("") };
  } finally {
    sending.destroy();
  }
}

/** Lets Node's client use the proxy in the environment, as `fetch` does. */
function useProxy(http: typeof import("node:http")): void {
  try {
    http.setGlobalProxyFromEnv(); // needs no permission, unlike reading the variables
  } catch { // its message may have a password
    const expected = "a URL like http://host:port in HTTP_PROXY and HTTPS_PROXY";
    throw new StorageError("bucket", `the proxy cannot be used; expected ${expected}`);
  }
}
