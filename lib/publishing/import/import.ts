/**
 * Importing lines in order. Each gets one outcome.
 *
 * The lines that arrive together, a few hundred of a file, are looked up at once and added in one
 * transaction. They are imported one by one if one of them copies content, unpublishes an item, or
 * has the token of another, because then each must see the effect of those before it.
 */

import { StorageError } from "../../errors/storage_error.ts";
import { messageOf } from "../../input/printable.ts";
import { unpublish, type UnpublishOptions } from "../unpublish.ts";
import { RefusedError } from "../../errors/refused_error.ts";
import { MissingError } from "../../storage/errors.ts";
import type { CatalogueEntry } from "../../storage/item.ts";
import type { Added, MediaStorage } from "../../storage/media/media_storage.ts";
import type { Token } from "../../storage/token.ts";
import { type ContentLine, type ContentOptions, importContent } from "./content.ts";
import { ConflictError, derivedTokenOf, entryFor, factsOf, NONE, requireSame } from "./facts.ts";
import { validateLine, type ValidLine } from "./valid_line.ts";
import { type ImportInput, isBlank } from "./input.ts";
import type { ImportLine } from "./lines.ts";

/** The maximum number of lines to import at once, so that an import stops soon. */
const MAX_BATCH = 1_000;

/** The maximum number of tokens to remember, to name the line of one that occurs again. */
const MAX_SEEN = 1_000_000;

/** The number of lines by outcome. */
export interface ImportCounts {
  added: number;
  unchanged: number;
  refused: number;
  /** The number of those added that were tombstones and unpublished an item. */
  unpublished: number;
}

/** Why a line is refused. */
export interface Refusal {
  readonly reason: string;
  /** What is wrong, without the values in the reason; {@linkcode MISSING_CONTENT}, or another. */
  readonly kind: string;
}

/** The kind of refusal of content that should be in storage, but is not there. */
export const MISSING_CONTENT = "missing content";

interface ImportOptions extends ContentOptions, UnpublishOptions {
  /** Whether an empty token is derived, as one that is not there. */
  readonly derivesTokens: boolean;
  /** Counts the outcomes; valid even after an error. */
  readonly outcomes: ImportCounts;
  /** Called for each refused line. */
  readonly onRefused: (line: ImportLine, refusal: Refusal) => Promise<void>;
  /** Called after each line whose content was already in storage. */
  readonly onFound: () => void;
  /** Called after each line that is not blank. */
  readonly onProgress: (line: ImportLine) => void;
}

/** A valid line. */
interface Candidate {
  readonly line: ImportLine;
  readonly valid: ValidLine;
  /** Left out if it depends on the content. */
  readonly token?: Token | undefined;
  /** The entry to add to the catalogue; left out if the content must be read first. */
  readonly entry?: CatalogueEntry | undefined;
}

/** An invalid line. */
interface Unreadable {
  readonly line: ImportLine;
  readonly valid?: undefined;
  readonly token?: undefined;
  readonly entry?: undefined;
  readonly refusal: Error;
}

type ParsedLine = Candidate | Unreadable;

export async function importLines(
  storage: MediaStorage,
  input: ImportInput,
  options: ImportOptions,
): Promise<void> {
  const seen = new Map<Token, number>();
  for await (const group of input.groups) {
    for (let start = 0; start < group.length; start += MAX_BATCH) {
      options.signal.throwIfAborted();
      const lines = group.slice(start, start + MAX_BATCH);
      const parsed = lines.flatMap((line) =>
        isBlank(line) ? [] : parse(line, input, options) ?? []
      );
      for (const { token, line } of parsed) {
        if (token === undefined || seen.size === MAX_SEEN || seen.has(token)) continue;
        seen.set(token, line.number);
      }
      await importBatch(storage, parsed, { ...options, seen });
    }
  }
}

/** Imports lines in order: all at once, or one by one if one may depend on another. */
async function importBatch(
  storage: MediaStorage,
  lines: readonly ParsedLine[],
  options: ImportOptions & { readonly seen: ReadonlyMap<Token, number> },
): Promise<void> {
  const { outcomes, isDryRun, onRefused, onFound, onProgress, seen } = options;
  const tokens = lines.flatMap(({ token }) => token ?? []);
  const known = await storage.catalogue.findAll(tokens);
  const isAlone = ({ valid, token, entry }: ParsedLine) =>
    valid !== undefined &&
    (token === undefined || entry === undefined || isUnpublishing(entry, known.get(token)));
  if (lines.length > 1 && (new Set(tokens).size < tokens.length || lines.some(isAlone))) {
    for (const line of lines) await importBatch(storage, [line], options);
    return;
  }
  const unknown = lines.flatMap(({ token, entry }) =>
    token === undefined || entry === undefined || known.has(token) ? [] : [[token, entry] as const]
  );
  const result = { known, ...await storage.addAll(unknown, isDryRun) };
  for (const parsed of lines) {
    const outcome = parsed.valid === undefined
      ? parsed.refusal
      : await outcomeOf(storage, parsed, result, options);
    if (typeof outcome === "string") {
      outcomes[outcome]++;
      if (parsed.valid?.source === "content") onFound();
    } else {
      const first = outcome instanceof ConflictError && parsed.token && seen.get(parsed.token);
      const isAgain = typeof first === "number" && first < parsed.line.number;
      const reason = messageOf(outcome) + (isAgain ? `; line ${first} has this token, too` : "");
      await onRefused(parsed.line, { reason, kind: kindOf(outcome) });
      outcomes.refused++;
    }
    onProgress(parsed.line);
  }
}

/**
 * Returns the outcome of a valid line.
 *
 * @param result The entries that were there before, and the result of adding the others.
 */
async function outcomeOf(
  storage: MediaStorage,
  candidate: Candidate,
  { known, added, faults }: Added & { readonly known: ReadonlyMap<Token, CatalogueEntry> },
  options: ImportOptions,
): Promise<"added" | "unchanged" | Error> {
  const { token } = candidate;
  const fault = token && faults.get(token);
  if (fault !== undefined) return fault;
  if (token && added.has(token)) return "added";
  try {
    return await importLine(storage, candidate, token && known.get(token), options);
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof StorageError) throw error;
    return error as Error;
  }
}

function kindOf(error: Error): string {
  if (error instanceof MissingError) return MISSING_CONTENT;
  const hasKind = error instanceof RefusedError || error instanceof StorageError;
  return hasKind ? error.kind : error.name;
}

/**
 * Publishes the content of a line, or compares it with the entry of its token; a tombstone
 * unpublishes.
 *
 * @param known The entry that was there before, if there was one.
 */
async function importLine(
  storage: MediaStorage,
  { valid, token, entry }: Candidate,
  known: CatalogueEntry | undefined,
  options: ImportOptions,
): Promise<"added" | "unchanged"> {
  if (token === undefined || entry === undefined) {
    return await importContent(storage, valid as ContentLine, token, options);
  }
  const find = async () => await storage.catalogue.find(token) as CatalogueEntry;
  let found = known ?? await find(); // added by another process meanwhile
  if (isUnpublishing(entry, found)) {
    requireSame({ kind: entry.kind }, token, found);
    const { isDryRun } = options;
    if (isDryRun || (await unpublish(storage, token, entry.unpublishedAt, options)).isNew) {
      options.outcomes.unpublished++;
      return "added";
    }
    found = await find(); // another process has unpublished it
  }
  requireSame(factsOf(valid, NONE), token, found);
  return "unchanged";
}

/** Returns whether an entry to import is the tombstone of an item that is still published. */
function isUnpublishing(
  entry: CatalogueEntry,
  known: CatalogueEntry | undefined,
): entry is CatalogueEntry & { readonly state: "unpublished" } {
  return entry.state === "unpublished" && known !== undefined && known.state !== "unpublished";
}

/** Parses a line; `undefined` if it has no values. */
function parse(
  line: ImportLine,
  input: ImportInput,
  options: Pick<ImportOptions, "derivesTokens">,
): ParsedLine | undefined {
  try {
    const raw = input.parse(line.bytes);
    if (raw === undefined) return undefined;
    const valid = validateLine(raw, options);
    const token = valid.token ?? derivedTokenOf(valid);
    return { line, valid, token, entry: token && entryFor(valid, token, Date.now()) };
  } catch (error) {
    return { line, refusal: error as Error };
  }
}
