/**
 * Answers, before they become responses. Range aside, which applies to GET only, an answer is the
 * same for GET and HEAD; the method matters only here, to decide whether to open the content. So a
 * HEAD says exactly what the GET would have said.
 */

import type { Awaitable } from "./awaitable.ts";

/** A response field. */
export type Field = readonly [name: string, value: string];

/** Keeps an answer out of every cache. */
export const NO_STORE: Field = ["Cache-Control", "no-store"];

/** Bytes to send: small content in memory, larger content as a stream. */
export type Body = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

/** Content in memory, or a function that opens it, called only for a GET. */
export type Content = Uint8Array<ArrayBuffer> | (() => Awaitable<Body>);

/** An answer: status, fields and content. */
export interface Answer {
  /** The status code. */
  readonly status: number;
  /** Includes an explicit Content-Length if there is content, since Deno sends 0 on a HEAD. */
  readonly fields: readonly Field[];
  /** Left out when the answer has none. */
  readonly content?: Content;
  /** `false` if nothing replaces the requested resource, even though its route has a successor. */
  readonly hasSuccessor?: boolean | undefined;
  /**
   * How long the same request gets the same answer, in milliseconds since the epoch; if absent, the
   * answer must not be reused.
   */
  readonly freshUntil?: number | undefined;
}

/**
 * Creates an answer whose content is a text.
 *
 * @param type The media type; the text is sent in UTF-8.
 * @param fields Additional fields.
 */
export function textAnswer(
  status: number,
  { type, text, fields }: { type: string; text: string; fields: readonly Field[] },
): Answer {
  const content = new TextEncoder().encode(text);
  return {
    status,
    fields: [
      ["Content-Type", type],
      ["Content-Length", String(content.length)],
      ["X-Content-Type-Options", "nosniff"],
      ...fields,
    ],
    content,
  };
}

/**
 * Opens the content of an answer, unless the method is HEAD.
 *
 * @throws Whatever opening the content throws.
 */
export function openBody(method: string, { content }: Answer): Awaitable<Body | null> {
  if (method === "HEAD" || content === undefined) return null;
  return typeof content === "function" ? content() : content;
}

/** Converts an answer to a response. Bytes are copied. */
export function toResponse({ status, fields }: Answer, body: Body | null): Response {
  if (body instanceof Uint8Array) {
    // The constructor makes what is sent; appending a field would discard it (Deno 2.9.6).
    return new Response(body, { status, headers: fields as [string, string][] });
  }
  const response = new Response(body, { status });
  // The constructor would compare each name with all previous ones in lower case (Deno 2.9.6).
  for (const [name, value] of fields) response.headers.append(name, value);
  return response;
}
