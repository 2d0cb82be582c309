/**
 * Importing lines in order. Each gets one outcome.
 *
 * The lines that arrive together, a few hundred of a file, are looked up at once and added in one
 * transaction. They are imported one by one if one of them copies content, unpublishes an item, or
 * has the token of another, because then each must see the effect of those before it.
 */

import { createHash } from "node:crypto";
import { StorageError } from "../../errors/storage_error.ts";
import { messageOf } from "../../input/printable.ts";
import { unpublish, type UnpublishOptions } from "../unpublish.ts";
import { RefusedError } from "../../errors/refused_error.ts";
import { MissingError } from "../../storage/errors.ts";
import type { CatalogueEntry, PublishedItem } from "../../storage/item.ts";
import type { Added, MediaStorage } from "../../storage/media/media_storage.ts";
import type { Token } from "../../storage/token.ts";
import { type ContentOptions, importContent, renewValidator } from "./content.ts";
import {
  type Candidate,
  candidateFor,
  ConflictError,
  factsOf,
  NONE,
  requireSame,
} from "./facts.ts";
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
  /** The number of those unchanged whose object has a new ETag, which is now in the catalogue. */
  renewed: number;
}

/** Why a line is refused. */
export interface LineRefusal {
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
  readonly onRefused: (line: ImportLine, refusal: LineRefusal) => Promise<void>;
  /** Called after each line whose content was already in storage. */
  readonly onFound: () => void;
  /** Called after each line that is not blank. */
  readonly onProgress: (line: ImportLine) => void;
}

/** The tokens of lines so far. */
interface Tokens {
  /** The number of the first line with each. */
  readonly seen: Map<Token, number>;
  /** The digest of the last line that would have added or unpublished it. Empty but in a dry run. */
  readonly planned: Map<Token, string>;
}

/** A line that is a candidate, or invalid. */
type ParsedLine =
  & { readonly line: ImportLine }
  & (Candidate | { readonly kind: "invalid"; readonly refusal: Error });

export async function importLines(
  storage: MediaStorage,
  input: ImportInput,
  options: ImportOptions,
): Promise<void> {
  const tokens: Tokens = { seen: new Map(), planned: new Map() };
  const { seen } = tokens;
  for await (const group of input.groups) {
    for (let start = 0; start < group.length; start += MAX_BATCH) {
      options.signal.throwIfAborted();
      const lines = group.slice(start, start + MAX_BATCH);
      const parsed = lines.flatMap((line) =>
        isBlank(line) ? [] : parse(line, input, options) ?? []
      );
      for (const each of parsed) {
        const token = tokenIn(each);
        if (token === undefined || seen.size === MAX_SEEN || seen.has(token)) continue;
        seen.set(token, each.line.number);
      }
      await importBatch(storage, parsed, { ...options, ...tokens });
    }
  }
}

/** Imports lines in order: all at once, or one by one if one may depend on another. */
async function importBatch(
  storage: MediaStorage,
  lines: readonly ParsedLine[],
  options: ImportOptions & Tokens,
): Promise<void> {
  const { outcomes, isDryRun, onRefused, onFound, onProgress, seen, planned } = options;
  const tokens = lines.flatMap((each) => tokenIn(each) ?? []);
  const known = await storage.catalogue.findAll(tokens);
  const isAlone = (each: ParsedLine) =>
    each.kind === "content" ||
    each.kind === "entry" && isUnpublishing(each.entry, known.get(each.token));
  if (lines.length > 1 && (new Set(tokens).size < tokens.length || lines.some(isAlone))) {
    for (const line of lines) await importBatch(storage, [line], options);
    return;
  }
  const objects = lines.flatMap((each) => knownObject(each, known) ?? []);
  const replaced = await storage.findReplaced(objects);
  const unknown = lines.flatMap((each) =>
    each.kind !== "entry" || known.has(each.token) ? [] : [[each.token, each.entry] as const]
  );
  const result = { known, replaced, ...await storage.addAll(unknown, isDryRun) };
  for (const parsed of lines) {
    const outcome = parsed.kind === "invalid"
      ? parsed.refusal
      : plannedOutcome(parsed, options) ?? await outcomeOf(storage, parsed, result, options);
    if (typeof outcome === "string") {
      outcomes[outcome]++;
      if (isDryRun && outcome === "added") plan(parsed, planned);
      if (parsed.kind === "entry" && parsed.valid.source === "content") onFound();
    } else {
      const token = outcome instanceof ConflictError ? tokenIn(parsed) : undefined;
      const first = token && seen.get(token);
      const isAgain = first !== undefined && first < parsed.line.number;
      const reason = messageOf(outcome) + (isAgain ? `; line ${first} has this token, too` : "");
      await onRefused(parsed.line, { reason, kind: refusalKindOf(outcome) });
      outcomes.refused++;
    }
    onProgress(parsed.line);
  }
}

/** Returns the token of a line, if the line alone determines it. */
function tokenIn(parsed: ParsedLine): Token | undefined {
  return parsed.kind === "invalid" ? undefined : parsed.token;
}

/** Returns the item that a line for an object has the token of, if it was published before. */
function knownObject(
  line: Candidate | { readonly kind: "invalid" },
  known: ReadonlyMap<Token, CatalogueEntry>,
): PublishedItem | undefined {
  const isObject = line.kind !== "invalid" && line.valid.source === "object";
  const entry = isObject && line.token ? known.get(line.token) : undefined;
  return entry?.state === "published" ? entry.item : undefined;
}

/**
 * Returns the outcome of a line in a dry run if an earlier line would have added its token, which no
 * catalogue has.
 */
function plannedOutcome(
  { token, valid }: Candidate,
  { planned, outcomes }: ImportOptions & Tokens,
): "added" | "unchanged" | Error | undefined {
  const earlier = token && planned.get(token);
  if (earlier === undefined) return undefined;
  if (earlier === digestOf(valid)) return "unchanged";
  if (valid.source !== "tombstone") {
    const message = `"token" is "${token}"; expected each token once`;
    return new ConflictError(message, { kind: "repeated token" });
  }
  outcomes.unpublished++;
  return "added";
}

/** Remembers a line of a dry run that would be added. */
function plan(parsed: ParsedLine, planned: Tokens["planned"]): void {
  if (parsed.kind === "invalid" || parsed.token === undefined || planned.size === MAX_SEEN) return;
  planned.set(parsed.token, digestOf(parsed.valid));
}

function digestOf(valid: ValidLine): string {
  return createHash("sha256").update(JSON.stringify(valid)).digest("base64");
}

/**
 * Returns the outcome of a valid line.
 *
 * @param result The entries that were there before, those of them whose objects were replaced, and
 *   the result of adding the others.
 */
async function outcomeOf(
  storage: MediaStorage,
  candidate: Candidate,
  { known, replaced, added, faults }: Added & {
    readonly known: ReadonlyMap<Token, CatalogueEntry>;
    readonly replaced: ReadonlySet<Token>;
  },
  options: ImportOptions,
): Promise<"added" | "unchanged" | Error> {
  const { token } = candidate;
  const fault = token && faults.get(token);
  if (fault !== undefined) return fault;
  if (token && added.has(token)) return "added";
  try {
    const outcome = await importLine(storage, candidate, token && known.get(token), options);
    const object = knownObject(candidate, known);
    if (object !== undefined && replaced.has(object.token)) {
      await renewValidator(storage, object, options);
      options.outcomes.renewed++;
    }
    return outcome;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof StorageError) throw error;
    return error as Error;
  }
}

function refusalKindOf(error: Error): string {
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
  candidate: Candidate,
  known: CatalogueEntry | undefined,
  options: ImportOptions,
): Promise<"added" | "unchanged"> {
  if (candidate.kind === "content") {
    return await importContent(storage, candidate.valid, candidate.token, options);
  }
  const { valid, token, entry } = candidate;
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
    return { line, ...candidateFor(validateLine(raw, options), Date.now()) };
  } catch (error) {
    return { line, kind: "invalid", refusal: error as Error };
  }
}
