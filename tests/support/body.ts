/** What storage reads, and the bodies that it returns. */

import type { Body } from "../../lib/http/outcome.ts";
import type { Source } from "../../lib/storage/content/content_store.ts";

/** Returns content to publish. */
export function sourceOf(content: Uint8Array): Source {
  return {
    async *read() {
      yield await Promise.resolve(content);
    },
  };
}

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
