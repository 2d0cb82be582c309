/** Importing content that may have to be read: a file, or an object with incomplete metadata. */

import { RefusedError } from "../../errors/refused_error.ts";
import type { PublishedItem } from "../../storage/item.ts";
import type { MediaStorage } from "../../storage/media/media_storage.ts";
import type { Token } from "../../storage/token.ts";
import { derivedToken, factsOf, requireSame } from "./facts.ts";
import type { ContentLine } from "./valid_line.ts";
import { UndetectedError } from "../media_type.ts";
import { describeFile, fileName, type Found, publishFile } from "../publish.ts";
import { describeObject, publishObject, refusalOfObject } from "../publish_object.ts";

export interface ContentOptions {
  /** Whether to find out what would be done, without doing it. */
  readonly isDryRun: boolean;
  readonly signal: AbortSignal;
  /** Resolves a path given in a line, or throws its refusal. */
  readonly resolve: (path: string) => Promise<string>;
}

/**
 * Publishes the content of a line, unless it is already published.
 *
 * @param token Left out if it depends on the content.
 * @throws {RefusedError} When it cannot be published, or another item has its token.
 */
export async function importContent(
  storage: MediaStorage,
  line: ContentLine,
  token: Token | undefined,
  options: ContentOptions,
): Promise<"added" | "unchanged"> {
  try {
    return await publishLine(storage, line, token, options);
  } catch (error) {
    if (error instanceof UndetectedError) {
      const { advice, unstated, kind } = error;
      throw new RefusedError(`${advice} as "${unstated}"`, { kind }); // an import has no --type
    }
    throw line.source === "file" ? error : await refusalOfObject(storage, error);
  }
}

async function publishLine(
  storage: MediaStorage,
  line: ContentLine,
  token: Token | undefined,
  { isDryRun, resolve, signal }: ContentOptions,
): Promise<"added" | "unchanged"> {
  const isFile = line.source === "file";
  const place = isFile ? await resolve(line.path) : line.location;
  const { kind, type, length, sha256, language, publishedAt, name = fileName(place) } = line;
  const validator = isFile ? undefined : line.validator;
  const expected = { digest: sha256, length, validator };
  const options = { kind, type, name, signal, expected };
  let facts = factsOf(line, { type, length, sha256, name, language: null });
  let known = token && (await storage.catalogue.findAll([token])).get(token);
  // If its digest is stated, a file need not be read to find it in the catalogue.
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

/**
 * Takes the new ETag of an object whose bytes are those of the published item. An object gets a new
 * one when it is copied in parts, for example, or encrypted with another key.
 *
 * @throws {RefusedError} When the bytes are others.
 */
export async function renewValidator(
  storage: MediaStorage,
  { token, kind, type, length, digest, location = "" }: PublishedItem,
  { isDryRun, signal }: Pick<ContentOptions, "isDryRun" | "signal">,
): Promise<void> {
  try {
    const options = { kind, type, signal, expected: { digest, length } };
    const { validator } = await describeObject(storage, location, options);
    if (!isDryRun) await storage.catalogue.setValidator(token, validator);
  } catch (error) {
    throw await refusalOfObject(storage, error);
  }
}
