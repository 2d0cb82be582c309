/** The application's own content of refusals. */

import { HTTP_TOKEN } from "../../http/http_token.ts";
import type { Field } from "../../http/outcome.ts";
import { mismatch } from "../mismatch.ts";
import type { Refusal } from "../refusal.ts";

/** The problem (RFC 9457) that a refusal presents. Its type is "about:blank". */
export interface RefusalProblem {
  /** The reason phrase of the status (RFC 9457 §4.2.1). */
  readonly title: string;
  /** 410 after the sunset; the status of a brownout; 503 if the record of calls is unavailable. */
  readonly status: 410 | 503;
  /** What has happened, for humans. */
  readonly detail: string;
  /** A URL reference to the requested resource's replacement, if there is one. */
  readonly successor?: string;
  /** A URL reference to the explanation of the retirement, if there is one. */
  readonly documentation?: string;
}

/** Content to send in place of a problem. */
export interface RefusalContent {
  /** The media type, for Content-Type (RFC 9110 §8.3), like "application/json". */
  readonly type: string;
  /** A text, which is sent as UTF-8, or bytes. */
  readonly body: string | Uint8Array;
}

/** Returns the problem that a refusal presents, if it does not redirect. */
export function problemIn({ body }: Refusal): RefusalProblem {
  return Object.freeze(JSON.parse(new TextDecoder().decode(body as Uint8Array)));
}

/**
 * Replaces the content of a refusal, and the fields that describe it.
 *
 * @param content What the option `refusalBody` has returned.
 * @throws {TypeError} If it is not as {@linkcode RefusalContent} says.
 */
export function withContent(refused: Refusal, content: unknown): Refusal {
  const { type, body } = Object(content);
  if (typeof type !== "string" || !MEDIA_TYPE.test(type)) {
    const expected = 'a media type like "application/json"';
    throw new TypeError(mismatch("type of refusalBody", type, expected));
  }
  const bytes = bytesOf(body);
  if (bytes === undefined) {
    throw new TypeError(mismatch("body of refusalBody", body, "a string or Uint8Array"));
  }
  const others = refused.fields.filter(([name]) => !/^content-(?:type|length)$/i.test(name));
  const own: Field[] = [["Content-Type", type], ["Content-Length", String(bytes.length)]];
  return { ...refused, fields: [...own, ...others], body: bytes };
}

/** Returns a copy of bytes, or a text as UTF-8; `undefined` for anything else. */
function bytesOf(body: unknown): ReturnType<TextEncoder["encode"]> | undefined {
  if (typeof body === "string") return new TextEncoder().encode(body);
  const isBytes = Object.prototype.toString.call(body) === "[object Uint8Array]"; // of any realm
  return isBytes ? new Uint8Array(body as Uint8Array) : undefined;
}

const PARAMETER = `${HTTP_TOKEN}=(?:${HTTP_TOKEN}|"(?:[\t !#-[\\]-~]|\\\\[\t -~])*")`;

/** Matches a media type (RFC 9110 §8.3.1). */
const MEDIA_TYPE = new RegExp(
  `^${HTTP_TOKEN}/${HTTP_TOKEN}(?:[\t ]*;[\t ]*(?:${PARAMETER})?)*$`,
);
