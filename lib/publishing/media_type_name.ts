/**
 * Media types as publishers state them.
 */

const MEDIA_TYPE =
  /^(audio|video)\/[\w.+-]+(; ?[\w-]+=([\w.+-]+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*$/i;

/** Reads an audio or video type: the name in lower case, while the case of parameters may matter. */
export function parseMediaType(text: string): string | undefined {
  return MEDIA_TYPE.test(text) ? text.replace(/^[^;]*/, (type) => type.toLowerCase()) : undefined;
}
