/**
 * The documents that the server generates from its routes and policy: the retirement notice and the
 * OpenAPI description. Loaded on first use.
 */

import { accepts } from "@std/http/negotiation";
import { createHash } from "node:crypto";
import { noticeAt } from "./notice.ts";
import { noticePage } from "./notice_page.ts";
import type { Field } from "../http/answer.ts";
import { PROBLEM_TYPES } from "../server/problem_types.ts";
import { reprDigest, type Representation } from "../server/representation.ts";
import type { DocumentOptions } from "../server/assembly.ts";
import { type DocumentName, METHODS } from "../server/route.ts";
import { templateOf } from "./template.ts";

/** Returns the representation of the document that a route serves. */
export async function representDocument(
  document: DocumentName,
  request: Request,
  options: DocumentOptions,
): Promise<Representation> {
  return document === "notice" ? representNotice(request, options) : await representApi(options);
}

/** Represents the retirement notice: HTML for people, JSON for programs that request it. */
function representNotice(
  request: Request,
  { routes, config, now }: DocumentOptions,
): Representation {
  const { policy, publicUrl } = config;
  const endpoints = routes.flatMap(({ path, successor }) =>
    successor === undefined
      ? []
      : [{ path: templateOf(path), methods: [...METHODS], successor: templateOf(successor) }]
  );
  const notice = noticeAt(policy, endpoints, now);
  const validatorFields = [["Vary", "Accept"]] as const;
  if (accepts(request, "text/html", "application/json") === "application/json") {
    const text = JSON.stringify(notice, null, 2) + "\n";
    return representText({ type: "application/json", text, validatorFields });
  }
  const { html, contentSecurityPolicy } = noticePage(notice, PROBLEM_TYPES, publicUrl);
  return representText({
    type: "text/html; charset=utf-8",
    text: html,
    validatorFields,
    contentFields: [["Content-Language", "en"], ["Content-Security-Policy", contentSecurityPolicy]],
  });
}

const descriptions = new WeakMap<DocumentOptions["config"], Representation>();

/**
 * Represents the OpenAPI description. Its generator is loaded on first use, and runs once, because
 * the result never changes. A failure is not cached, so the next request retries.
 */
async function representApi({ routes, config }: DocumentOptions): Promise<Representation> {
  const known = descriptions.get(config);
  if (known !== undefined) return known;
  const { describeApi } = await import("./openapi.ts");
  const text = describeApi(routes, config);
  const description = representText({ type: "application/json", text });
  descriptions.set(config, description);
  return description;
}

/** A text document to serve. */
export interface TextOptions {
  /** The media type; the text is sent in UTF-8. */
  readonly type: string;
  readonly text: string;
  /** Fields that a 304 must include, like Vary. */
  readonly validatorFields?: readonly Field[];
  /** Additional fields that describe the content. */
  readonly contentFields?: readonly Field[];
}

/** Represents a text. It has no Last-Modified, because it changes with the clock. */
export function representText(options: TextOptions): Representation {
  const { type, text, validatorFields = [], contentFields = [] } = options;
  const content = new TextEncoder().encode(text);
  const digest = createHash("sha256").update(content).digest("hex");
  return {
    length: content.length,
    etag: { weak: false, opaque: digest },
    lastModified: undefined,
    validatorFields: [["ETag", `"${digest}"`], ...validatorFields],
    contentFields: [
      ["Content-Type", type],
      ["Accept-Ranges", "bytes"],
      ["Repr-Digest", reprDigest(digest)],
      ["X-Content-Type-Options", "nosniff"],
      ...contentFields,
    ],
    content: (range) => range === undefined ? content : content.slice(range.first, range.last + 1),
  };
}
