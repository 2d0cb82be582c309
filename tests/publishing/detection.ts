/** What becomes of content that a test has made. */

import { RefusedError } from "../../lib/errors/refused_error.ts";
import { memoryBytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType, type Stated } from "../../lib/publishing/media_type.ts";
import { ascii } from "./containers.ts";

/** Detects the type of content, given as bytes or as a character for each; or of its beginning. */
export function detect(content: Uint8Array | string, stated: Stated = {}, isWhole = true) {
  const bytes = typeof content === "string" ? ascii(content) : content;
  return detectMediaType("it", memoryBytes(new Uint8Array(bytes), isWhole), stated);
}

/** Returns the kind and the type of content, or the option with which a refusal asks for them. */
export async function outcomeOf(content: Uint8Array): Promise<string> {
  try {
    const { kind, type } = await detect(content);
    return `${kind} ${type}`;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return /--\w+$/.exec(error.message)?.[0] ?? error.message;
  }
}
