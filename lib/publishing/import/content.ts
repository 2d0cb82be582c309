/**
 * Importing content that may have to be read: a file, or an object with incomplete metadata.
 */

import type { MediaStorage } from "../../storage/media/media_storage.ts";
import type { CatalogueEntry } from "../../storage/item.ts";
import { StorageError } from "../../storage/errors.ts";
import type { Token } from "../../storage/token.ts";
import { derivedToken, type Facts, instantsOf, requireSame } from "./facts.ts";
import { type ImportRecord, RecordError } from "./record.ts";
import { fileName, inspectFile, publishFile } from "../publish.ts";
import { messageOf } from "../../input/printable.ts";
import { RefusedError } from "../../input/refused_error.ts";
import { inspectObject, publishObject } from "../publish_object.ts";

/** How to import content. */
export interface ContentOptions {
  /** Only determines what would be done. */
  readonly isDryRun: boolean;
  /** Cancels the work. */
  readonly signal: AbortSignal;
  /** Resolves a path given in a record, or throws why it is refused. */
  readonly resolve: (path: string) => Promise<string>;
}

/** A record whose content may have to be read. */
export type ContentRecord = ImportRecord & { readonly source: "file" | "object" };

/**
 * Publishes the content of a record, unless it is already published.
 *
 * @param token Left out if it depends on the content.
 * @throws {RecordError} When it cannot be published, or another item has its token.
 * @throws {StorageError} When storage fails.
 */
export async function importContent(
  storage: MediaStorage,
  record: ContentRecord,
  token: Token | undefined,
  options: ContentOptions,
): Promise<"added" | "unchanged"> {
  try {
    return record.source === "file"
      ? await importFile(storage, record, token, options)
      : await importObject(storage, record, token as Token, options);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    const { field } = error;
    throw new RecordError(`${field === undefined ? "" : "is wrong: "}${messageOf(error)}`, field);
  }
}

async function importFile(
  storage: MediaStorage,
  record: ContentRecord & { source: "file" },
  token: Token | undefined,
  { isDryRun, resolve, signal }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const path = await resolve(record.path);
  const { kind, type, length, sha256, language, publishedAt, name = fileName(path) } = record;
  let options = { kind, type, signal, expected: { digest: sha256, length } };
  let facts: Facts = { kind, type, length, sha256, name, language: language ?? null };
  let known = token === undefined ? undefined : await findEntry(storage, token);
  // If the record states the digest, the content need not be read to find it on record.
  if (sha256 === undefined && (token === undefined || known !== undefined) || isDryRun && !known) {
    const { digest, ...found } = await inspectFile(path, options);
    options = { ...options, expected: { digest, length: found.length } };
    facts = { ...facts, ...found, sha256: digest };
    token ??= derivedToken(digest, name);
    known ??= await findEntry(storage, token);
  }
  if (known !== undefined) {
    requireSame({ ...facts, ...instantsOf(record) }, token as Token, known);
    return "unchanged";
  }
  if (!isDryRun) {
    await publishFile(storage, path, { ...options, token, name, language, publishedAt });
  }
  return "added";
}

async function importObject(
  storage: MediaStorage,
  record: ContentRecord & { source: "object" },
  token: Token,
  { isDryRun, signal }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const { location, kind, type, length, sha256, validator, language, publishedAt } = record;
  const { name = fileName(location) } = record;
  const known = await findEntry(storage, token);
  if (known !== undefined) {
    const stated = { location, kind, type, length, sha256, validator, name };
    requireSame({ ...stated, language: language ?? null, ...instantsOf(record) }, token, known);
    return "unchanged";
  }
  const options = { kind, type, name, signal, expected: { digest: sha256, length, validator } };
  try {
    if (isDryRun) await inspectObject(storage, location, options);
    else await publishObject(storage, location, { ...options, token, language, publishedAt });
    return "added";
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    await storage.content.id(); // throws if more than this object is at fault
    throw new RecordError(error.message);
  }
}

/** Looks up the entry of a token. */
export async function findEntry(
  storage: MediaStorage,
  token: Token,
): Promise<CatalogueEntry | undefined> {
  return (await storage.catalogue.findAll([token])).get(token);
}
