/**
 * Outcomes: the results of handling requests, before they become responses. GET and HEAD have the
 * same outcome, except that only a GET has its Range evaluated and its content read.
 */

export type Field = [name: string, value: string];

/**
 * Keeps caches from changing a response (RFC 9111 §5.2.2.6): a GET that is compressed on the way no
 * longer has the length of its HEAD.
 */
export const NO_TRANSFORM = "no-transform";

/** Keeps a response out of every cache, and as it is. */
export const NO_STORE: Field = ["Cache-Control", `no-store, ${NO_TRANSFORM}`];

/**
 * Bytes to send: short content at once, longer content as a stream. TypeScript before 5.7 does not
 * know `Uint8Array<ArrayBuffer>` by this name, and with Node's types alone, `TextEncoder` is no type.
 */
export type Body =
  | ReturnType<typeof Uint8Array.of>
  | ReadableStream<ReturnType<typeof Uint8Array.of>>;

/** The result of handling a request. */
export interface Outcome {
  /** The status code. */
  readonly status: number;
  /** Must contain Content-Length if a GET has content; otherwise Deno sends 0 on the HEAD. */
  readonly fields: readonly Field[];
  /** The content; a HEAD never sends it. */
  readonly body?: Body | undefined;
}

/** Creates an outcome with a text as its content, in UTF-8. */
export function textOutcome(
  status: number,
  { type, text, fields }: { type: string; text: string; fields: readonly Field[] },
): Outcome & { readonly body: ReturnType<typeof Uint8Array.of> } {
  const body = new TextEncoder().encode(text);
  return {
    status,
    fields: [
      ["Content-Type", type],
      ["Content-Length", String(body.length)],
      ["X-Content-Type-Options", "nosniff"],
      ...fields,
    ],
    body,
  };
}
