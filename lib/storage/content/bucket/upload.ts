/**
 * Uploading content in one streamed PUT of known length. Uses Node's client, because Deno's `fetch`
 * (2.9.6) sends every stream chunked, which S3 rejects.
 */

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../../async/abort.ts";
import { fulfilledWithin } from "../../../async/deadline.ts";
import type { ContentReference } from "../../item.ts";
import { type Source, SourceChangedError } from "../content_store.ts";
import { StorageError } from "../../errors.ts";
import type { StoreResponse } from "./client.ts";

/** Milliseconds for the store's answer after the last byte. */
const ANSWER_TIMEOUT_MS = 120_000;

const CONNECT_TIMEOUT_MS = 10_000;

export interface Upload {
  readonly url: URL;
  /** Signed with the digest of the content. */
  readonly headers: Headers;
  readonly content: Pick<ContentReference, "digest" | "length">;
  readonly source: Source;
  /** Milliseconds for which the store may accept no data. */
  readonly stallTimeoutMs?: number;
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
  { url, headers, content, source, stallTimeoutMs = 30_000 }: Upload,
): Promise<Pick<StoreResponse, "status" | "text">> {
  const { request } = url.protocol === "https:"
    ? await import("node:https")
    : await import("node:http");
  source.signal?.throwIfAborted();
  const fields = { ...Object.fromEntries(headers), "Content-Length": String(content.length) };
  const answered = Promise.withResolvers<IncomingMessage>();
  let response: IncomingMessage | undefined;
  answered.promise.then((answer) => response = answer, () => {}); // reported where it is awaited
  const options = { method: "PUT", headers: fields, agent: false };
  const sending = request(url, options, answered.resolve);
  sending.on("error", (cause) => {
    answered.reject(new StorageError("bucket", "the store cannot be reached", { cause }));
  });
  const settle = async (limit: number, step: Promise<unknown>) => {
    if (await fulfilledWithin(limit, unlessAborted(step, source.signal))) return;
    throw new StorageError("bucket", `the store accepted no data for ${limit / 1_000} s`);
  };
  try {
    let limit = CONNECT_TIMEOUT_MS;
    for await (const chunk of requireUnchanged(source.read("sending"), content)) {
      const flushed = new Promise<void>((resolve) => {
        sending.write(chunk, (error) => error ?? resolve()); // an error is also an event
      });
      await settle(limit, Promise.race([flushed, answered.promise]));
      if (response !== undefined) break;
      limit = stallTimeoutMs;
    }
    if (response === undefined) sending.end();
    await settle(ANSWER_TIMEOUT_MS, answered.promise);
    const answer = await answered.promise;
    const reading = Array.fromAsync<string>(answer.setEncoding("utf8"));
    await settle(ANSWER_TIMEOUT_MS, reading);
    return { status: answer.statusCode ?? 0, text: (await reading).join("") };
  } finally {
    sending.destroy();
  }
}

/** Passes chunks on, the last one only if all of them match the digest. */
async function* requireUnchanged(
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
