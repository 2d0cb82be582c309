/**
 * What storage gives for content, read by a test.
 */

import type { Body } from "../../lib/http/answer.ts";
import type { Awaitable } from "../../lib/http/awaitable.ts";

/** The stream of a body, also of one that is there at once. Rejects where opening it throws. */
export async function streamOf(
  open: () => Awaitable<Body>,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  return new Response(await open()).body as ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** All bytes of a body. */
export async function bytesOf(open: () => Awaitable<Body>): Promise<Uint8Array<ArrayBuffer>> {
  return await new Response(await open()).bytes();
}
