/** Importing content that may have to be read: a file, or an object with incomplete metadata. */

import { RefusedError } from "../../errors/refused_error.ts";
import type { MediaStorage } from "../../storage/media/media_storage.ts";
import type { Token } from "../../storage/token.ts";
import { derivedToken, factsOf, requireSame } from "./facts.ts";
import type { ImportRecord } from "./imported_record.ts";
import { UndetectedError } from "../media_type.ts";
import { describeFile, fileName, type Found, publishFile } from "../publish.ts";
import { describeObject, publishObject, refusalOfObject } from "../publish_object.ts";

export interface ContentOptions {
  /** Whether to find out what would be done, without doing it. */
  readonly isDryRun: boolean;
  readonly signal: AbortSignal;
  /** Resolves a path given in a record, or throws its refusal. */
  readonly resolve: (path: string) => Promise<string>;
}

/** A record whose content may have to be read. */
export type ContentRecord = ImportRecord & { readonly source: "file" | "object" };

/**
 * Publishes the content of a record, unless it is already published.
 *
 * @param token Left out if it depends on the content.
 * @throws {RefusedError} When it cannot be published, or another item has its token.
 */
export async function importContent(
  storage: MediaStorage,
  record: ContentRecord,
  token: Token | undefined,
  options: ContentOptions,
): Promise<"added" | "unchanged"> {
  try {
    return await publishRecord(storage, record, token, options);
  } catch (error) {
    if (error instanceof UndetectedError) {
      const { advice, unstated, kind } = error;
      throw new RefusedError(`${advice} as "${unstated}"`, { kind }); // an import has no --type
    }
    throw record.source === "file" ? error : await refusalOfObject(storage, error);
  }
}

async function publishRecord(
  storage: MediaStorage,
  record: ContentRecord,
  token: Token | undefined,
  { isDryRun, resolve, signal }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const isFile = record.source === "file";
  const place = isFile ? await resolve(record.path) : record.location;
  const { kind, type, length, sha256, language, publishedAt, name = fileName(place) } = record;
  const validator = isFile ? undefined : record.validator;
  const expected = { digest: sha256, length, validator };
  const options = { kind, type, name, signal, expected };
  let facts = factsOf(record, { type, length, sha256, name, language: null });
  let known = token && (await storage.catalogue.findAll([token])).get(token);
  // If its digest is stated, a file need not be read to find it on record.
  const isRead = isFile && sha256 === undefined && (token === undefined || known !== undefined);
  let found: Found | undefined;
  if (isRead || isDryRun && known === undefined) {
    found = await (isFile ? describeFile(place, options) : describeObject(storage, place, options));
    const { digest, ...rest } = found;
    facts = { ...facts, ...rest, sha256: digest };
    token ??= derivedToken(digest, name);
    known ??= (await storage.catalogue.findAll([token])).get(token);
  }
  if (token !== undefined && known !== undefined) {
    requireSame(facts, token, known);
    return "unchanged";
  }
  const publish = isFile ? publishFile : publishObject;
  if (!isDryRun) await publish(storage, place, { ...options, found, token, language, publishedAt });
  return "added";
}
