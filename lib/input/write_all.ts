/** Writing bytes. */

/** Writes all bytes, in several writes if necessary. */
export async function writeAll(
  writer: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await writer.write(bytes.subarray(done));
}
