/** WAV files for tests. */

/** The header of a WAV file of 8-bit PCM that ends where its file ends. */
export const WAV_HEADER = new TextEncoder().encode(
  "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0",
);

/** Makes a WAV file; the same seed makes the same bytes. */
export function wav(seed: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length + seed);
  for (let index = 0; index < bytes.length; index++) bytes[index] = (index * seed) >> 3;
  bytes.set(WAV_HEADER);
  return bytes;
}
