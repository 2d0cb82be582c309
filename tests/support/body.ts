/** Reading the bodies that storage returns. */

import type { Body } from "../../lib/http/outcome.ts";

/** Returns the stream of a body, even if that is a `Uint8Array`. Rejects if opening throws. */
export async function streamOf(
  open: () => Body | Promise<Body>,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  return new Response(await open()).body as ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Reads all bytes of a body. */
export async function bytesOf(open: () => Body | Promise<Body>): Promise<Uint8Array<ArrayBuffer>> {
  return await new Response(await open()).bytes();
}
