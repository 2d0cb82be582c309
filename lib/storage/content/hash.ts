/** Hashing content. */

import { createHash } from "node:crypto";

/** Reads content to its end, and returns its SHA-256 in hexadecimal digits and its length. */
export async function hashOf(chunks: AsyncIterable<Uint8Array>) {
  const hash = createHash("sha256");
  let length = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    length += chunk.length;
  }
  return { digest: hash.digest("hex"), length };
}
