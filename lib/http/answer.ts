/**
 * An answer before it becomes a response. Everything that decides an answer builds one of these,
 * for GET and HEAD alike; the method is looked at once, here, and only to decide whether the
 * content is opened. That is what makes a HEAD say exactly what the GET would have said.
 */

import type { Awaitable } from "./awaitable.ts";

/** One response field. */
export type Field = readonly [name: string, value: string];

/** Keeps an answer out of every cache. */
export const NO_STORE: Field = ["Cache-Control", "no-store"];

/** Bytes to send: those that are few at once, others as they are read. */
export type Body = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

/** Content in memory, or a way to open it, called for a GET only. */
export type Content = Uint8Array<ArrayBuffer> | (() => Awaitable<Body>);

/** Status, fields and content of an answer. */
export interface Answer {
  /** The status code. */
  readonly status: number;
  /** With an explicit Content-Length wherever there is content: Deno would send a HEAD's as 0. */
  readonly fields: readonly Field[];
  /** Left out when the answer has none. */
  readonly content?: Content;
  /** `false` when nothing replaces what was asked for, whatever else its route says. */
  readonly hasSuccessor?: boolean | undefined;
  /**
   * Milliseconds since the epoch, until when the same request gets the same answer; when left out,
   * nothing is known of the next one.
   */
  readonly freshUntil?: number | undefined;
}

/**
 * An answer whose content is a short text.
 *
 * @param type The media type; the text is sent in UTF-8.
 * @param fields Fields besides those that describe the content.
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
 * Opens the content of an answer to a request of the given method.
 *
 * @throws Whatever opening the content throws.
 */
export function openBody(method: string, { content }: Answer): Awaitable<Body | null> {
  if (method === "HEAD" || content === undefined) return null;
  return typeof content === "function" ? content() : content;
}

/** Makes a response of an answer. */
export function toResponse({ status, fields }: Answer, body: Body | null): Response {
  const response = new Response(body, { status });
  // Given to the constructor, each name is compared with all before it in lower case (Deno 2.9.6).
  for (const [name, value] of fields) response.headers.append(name, value);
  return response;
}
