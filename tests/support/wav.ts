/** WAV files for tests. */

/** Makes a WAV file; the same seed makes the same bytes. */
export function wav(seed: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length + seed);
  for (let index = 0; index < bytes.length; index++) bytes[index] = (index * seed) >> 3;
  bytes.set(new TextEncoder().encode("RIFF\x24\x00\x00\x00WAVEfmt "));
  return bytes;
}
