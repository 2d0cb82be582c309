/**
 * Importing content that may have to be read: a file, or an object with incomplete metadata.
 */

import type { MediaStorage } from "../storage/media_storage.ts";
import { type CatalogueEntry, StorageError } from "../storage/storage.ts";
import type { Token } from "../storage/token.ts";
import { derivedToken, type Facts, instantsOf, requireSame } from "./import_facts.ts";
import { type ImportRecord, RecordError } from "./import_record.ts";
import {
  fileName,
  inspectFile,
  type ProgressWatcher,
  publishFile,
  RefusedError,
} from "./publish.ts";
import { publishObject } from "./publish_object.ts";

/** How to import content. */
export interface ContentOptions {
  /** Only determines what would be done. */
  readonly isDryRun: boolean;
  /** Cancels the work. */
  readonly signal: AbortSignal;
  /** Resolves a path given in a record. */
  readonly resolve: (path: string) => string;
  /** Wraps the reading of content, to follow the progress. */
  readonly watch?: ProgressWatcher;
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
    const { cause } = error;
    const because = cause instanceof Error ? ` (${cause.message})` : "";
    throw new RecordError(error.message + because);
  }
}

async function importFile(
  storage: MediaStorage,
  record: ContentRecord & { source: "file" },
  token: Token | undefined,
  { isDryRun, resolve, signal, watch }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const path = resolve(record.path);
  const { kind, type, length, language, publishedAt, name = fileName(path) } = record;
  let { sha256 } = record;
  const options = { kind, type, signal, ...(watch === undefined ? {} : { watch }) };
  let facts: Facts = { kind, type, length, sha256, name, language: language ?? null };
  let known = token === undefined ? undefined : await find(storage, token);
  // If the record states the digest, the content need not be read to find it on record.
  if (sha256 === undefined && (token === undefined || known !== undefined) || isDryRun && !known) {
    const { digest, ...found } = await inspectFile(path, options);
    requireStated(record.path, facts, { ...found, sha256: digest });
    facts = { ...facts, ...found, sha256: digest };
    sha256 = digest;
    token ??= derivedToken(digest, name);
    known ??= await find(storage, token);
  }
  if (known !== undefined) {
    requireSame({ ...facts, ...instantsOf(record) }, token as Token, known);
    return "unchanged";
  }
  if (!isDryRun) {
    const expected = { digest: sha256, length };
    const metadata = { token, name, language, publishedAt, expected };
    await publishFile(storage, path, { ...options, ...metadata });
  }
  return "added";
}

async function importObject(
  storage: MediaStorage,
  record: ContentRecord & { source: "object" },
  token: Token,
  { isDryRun, signal, watch }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const { location, kind, type, length, sha256, validator, language, publishedAt } = record;
  const { name = fileName(location) } = record;
  const known = await find(storage, token);
  if (known !== undefined) {
    const stated = { location, kind, type, length, sha256, validator, name };
    requireSame({ ...stated, language: language ?? null, ...instantsOf(record) }, token, known);
    return "unchanged";
  }
  if (isDryRun) return "added";
  try {
    await publishObject(storage, location, {
      ...{ token, kind, type, name, language, publishedAt, signal },
      ...(watch === undefined ? {} : { watch }),
      expected: { digest: sha256, length, validator },
    });
    return "added";
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    await storage.prepare(); // throws if more than this object is at fault
    throw new RecordError(error.message);
  }
}

async function find(storage: MediaStorage, token: Token): Promise<CatalogueEntry | undefined> {
  return (await storage.lookUpAll([token])).get(token);
}

/** Requires a file to match its record. */
function requireStated(path: string, stated: Facts, found: Facts): void {
  for (const [name, value] of Object.entries(found)) {
    const expected = stated[name];
    if (expected === undefined || expected === value) continue;
    throw new RecordError(`${JSON.stringify(path)} has ${JSON.stringify(value)}`, name, expected);
  }
}
