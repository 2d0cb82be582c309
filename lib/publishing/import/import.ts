/**
 * Importing records, one per line, in the order of the lines. Each line gets one outcome.
 *
 * The lines that arrive together, a few hundred of a file, are looked up at once and added in one
 * transaction, unless one of them copies content, unpublishes an item, or has the token of another:
 * then each must see the effect of those before it.
 */

import type { MediaStorage } from "../../storage/media/media_storage.ts";
import type { CatalogueEntry } from "../../storage/item.ts";
import { StorageError } from "../../storage/errors.ts";
import type { Token } from "../../storage/token.ts";
import { messageOf } from "../../input/printable.ts";
import { readContent } from "../publish_object.ts";
import { type ContentOptions, type ContentRecord, findEntry, importContent } from "./content.ts";
import { derivedTokenOf, entryFor, factsOf, NONE, requireSame } from "./facts.ts";
import { type ImportLine, MAX_LINE, readLines } from "./lines.ts";
import { type ImportRecord, parseLine, readRecord, RecordError } from "./record.ts";

/** The number of records by outcome. */
export interface ImportCounts {
  added: number;
  unchanged: number;
  refused: number;
  /** How many of the added were tombstones that unpublished an item. */
  unpublished: number;
}

/** How to import. */
export interface ImportOptions extends ContentOptions {
  /** Called for each refused line; later pieces of a line that is too long have no reason. */
  readonly refuse: (line: ImportLine, reason?: RecordError) => Promise<void>;
  /** Called with the number of input bytes that were processed. */
  readonly advance: (bytes: number) => void;
}

/** A line with a valid record. */
interface Candidate {
  readonly line: ImportLine;
  readonly record: ImportRecord;
  /** Left out if it depends on the content. */
  readonly token?: Token | undefined;
  /** What to add to the catalogue; left out if the content must be read first. */
  readonly entry?: CatalogueEntry | undefined;
}

/** A line without a valid record; later pieces of a line that is too long have no fault. */
interface Unreadable {
  readonly line: ImportLine;
  readonly record?: undefined;
  readonly token?: undefined;
  readonly entry?: undefined;
  readonly fault: RecordError | undefined;
}

/** A line that was read. */
type Inspected = Candidate | Unreadable;

/** Imports records into storage. */
export class Importer {
  /** The outcomes so far. */
  readonly outcomes: ImportCounts = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
  readonly #storage: MediaStorage;
  readonly #options: ImportOptions;

  constructor(storage: MediaStorage, options: ImportOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /**
   * Imports every record of the input.
   *
   * @throws {StorageError} When storage fails. Outcomes already counted remain valid.
   * @throws What aborted the signal.
   */
  async run(input: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let latest = 0;
    for await (const lines of readLines(readContent(input, this.#options.signal))) {
      const inspected: Inspected[] = [];
      for (const line of lines) {
        const isContinued = line.number === latest;
        latest = line.number;
        if (isBlank(line)) this.#options.advance(line.bytes.length);
        else inspected.push(inspectLine(line, isContinued));
      }
      await this.#settle(inspected);
    }
  }

  /** Settles lines in order: all at once or, if one may depend on another, one by one. */
  async #settle(lines: readonly Inspected[]): Promise<void> {
    const { signal, isDryRun, refuse, advance } = this.#options;
    signal.throwIfAborted();
    const tokens = lines.flatMap(({ token }) => token ?? []);
    const known = await this.#storage.catalogue.findAll(tokens);
    const isAlone = ({ record, token, entry }: Inspected) =>
      record !== undefined &&
      (entry === undefined || isUnpublishing(entry, known.get(token as Token)));
    if (lines.length > 1 && (new Set(tokens).size < tokens.length || lines.some(isAlone))) {
      for (const line of lines) await this.#settle([line]);
      return;
    }
    const unknown = lines.flatMap(({ token, entry }) =>
      token === undefined || entry === undefined || known.has(token)
        ? []
        : [[token, entry] as const]
    );
    const { added, faults } = await this.#storage.addAll(unknown, isDryRun);
    for (const inspected of lines) {
      const { line, record, token = "" as Token } = inspected;
      const fault = faults.get(token);
      const outcome = record === undefined
        ? inspected.fault
        : fault !== undefined
        ? new RecordError(fault.message)
        : added.has(token)
        ? "added"
        : await this.#conclude(inspected, known.get(token)).catch((error) =>
          this.#refusalOf(error)
        );
      if (typeof outcome === "string") this.outcomes[outcome]++;
      else {
        await refuse(line, outcome);
        if (outcome !== undefined) this.outcomes.refused++;
      }
      advance(line.bytes.length);
    }
  }

  /**
   * Publishes the content of a record, or compares it with the entry of its token; a tombstone
   * unpublishes.
   *
   * @param known Left out if there was none before.
   * @throws {RecordError} When the record is refused.
   */
  async #conclude(
    { record, token, entry }: Candidate,
    known: CatalogueEntry | undefined,
  ): Promise<"added" | "unchanged"> {
    if (token === undefined || entry === undefined) {
      return await importContent(this.#storage, record as ContentRecord, token, this.#options);
    }
    const find = async () => await findEntry(this.#storage, token) as CatalogueEntry;
    let found = known ?? await find(); // another process was first
    if (isUnpublishing(entry, found)) {
      requireSame({ kind: entry.kind }, token, found);
      if (this.#options.isDryRun || await this.#storage.unpublish(token, entry.unpublishedAt)) {
        this.outcomes.unpublished++;
        return "added";
      }
      found = await find(); // so it was here
    }
    requireSame(factsOf(record, NONE), token, found);
    return "unchanged";
  }

  /** Returns why a line is refused, unless the import as a whole fails. */
  #refusalOf(error: unknown): RecordError {
    if (!(error instanceof RecordError)) this.#options.signal.throwIfAborted();
    if (error instanceof StorageError) throw error;
    return refusalOf(error);
  }
}

/** Returns why a line is refused, whatever went wrong with it. */
function refusalOf(error: unknown): RecordError {
  return error instanceof RecordError ? error : new RecordError(messageOf(error as Error));
}

/** Whether an entry to import is the tombstone of an item that is still published. */
function isUnpublishing(
  entry: CatalogueEntry,
  known: CatalogueEntry | undefined,
): entry is CatalogueEntry & { readonly state: "unpublished" } {
  return entry.state === "unpublished" && known !== undefined && known.state !== "unpublished";
}

/** Reads the record of a line. */
function inspectLine(line: ImportLine, isContinued: boolean): Inspected {
  if (!line.isWhole) {
    const fault = new RecordError(`the line is longer than ${MAX_LINE} bytes`);
    return { line, fault: isContinued ? undefined : fault };
  }
  try {
    const record = readRecord(parseLine(line.bytes));
    const token = record.token ?? derivedTokenOf(record);
    return { line, record, token, entry: token && entryFor(record, token, Date.now()) };
  } catch (error) {
    return { line, fault: refusalOf(error) };
  }
}

/** Whether a line has nothing but JSON's white space. */
function isBlank({ bytes, isWhole }: ImportLine): boolean {
  return isWhole && bytes.every((byte) => [0x20, 0x09, 0x0a, 0x0d].includes(byte));
}
