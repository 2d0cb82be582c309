/**
 * Importing records, one per line, in the order of the lines. Each line gets one outcome.
 *
 * A few hundred lines are looked up at once, and added in one transaction. A line that copies
 * content or unpublishes an item is settled alone, after those before it.
 */

import type { MediaStorage } from "../../storage/media/media_storage.ts";
import type { CatalogueEntry } from "../../storage/item.ts";
import { StorageError } from "../../storage/errors.ts";
import type { Token } from "../../storage/token.ts";
import { messageOf } from "../../input/printable.ts";
import { fulfilledWithin } from "../../async/deadline.ts";
import { unlessAborted } from "../../async/abort.ts";
import { type ContentOptions, type ContentRecord, importContent } from "./content.ts";
import { derivedTokenOf, entryFor, factsOf, instantsOf, requireSame } from "./facts.ts";
import { type ImportLine, MAX_LINE, readLines } from "./lines.ts";
import { type ImportRecord, parseLine, readRecord, RecordError } from "./record.ts";

/** Milliseconds after which lines are settled when input arrives slowly. */
const MAX_WAIT_MS = 2_000;

/** Bytes to process at a time. */
const CHUNK = 64 * 1024;

/** Lines per lookup and transaction, which blocks other publishers. */
const BATCH = 500;

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

/** A line with a valid record. The token is left out if it depends on the content. */
interface Candidate {
  readonly line: ImportLine;
  readonly record: ImportRecord;
  readonly token: Token | undefined;
}

/** A line without a valid record; later pieces of a line that is too long have no fault. */
interface Unreadable {
  readonly line: ImportLine;
  readonly record?: undefined;
  readonly fault: RecordError | undefined;
}

/** A line that was looked up. */
interface Concluded {
  readonly line: ImportLine;
  /** What to add to the catalogue, unless there is an outcome. */
  readonly wanted?: Wanted;
  /** Left out for later pieces of a line that is too long. */
  outcome?: keyof ImportCounts | RecordError | undefined;
}

/** A record to add to the catalogue as it is. */
interface Wanted {
  readonly token: Token;
  readonly entry: CatalogueEntry;
  /** The record from which the entry was made. */
  readonly record: ImportRecord;
}

/** Imports records into storage. */
export class Importer {
  /** The outcomes so far. */
  readonly outcomes: ImportCounts = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
  readonly #storage: MediaStorage;
  readonly #options: ImportOptions;
  /** Lines that are not reported yet, in order. */
  #concluded: Concluded[] = [];

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
    let batch: (Candidate | Unreadable)[] = [];
    const tokens = new Set<Token>();
    let since = 0;
    const settle = async () => {
      const lines = batch;
      batch = [];
      tokens.clear();
      await this.#settle(lines);
    };
    let cut = 0;
    for await (const lines of readLines(readInput(input, this.#options.signal))) {
      for (const line of lines) {
        const inspected = inspectLine(line, line.number === cut);
        if (!line.isWhole) cut = line.number;
        if (inspected === undefined) {
          this.#options.advance(line.bytes.length);
          continue;
        }
        const token = inspected.record === undefined ? undefined : inspected.token;
        // A lookup must see the effect of earlier lines with the same token.
        if (batch.length === BATCH || token !== undefined && tokens.has(token)) await settle();
        if (batch.length === 0) since = performance.now();
        if (token !== undefined) tokens.add(token);
        batch.push(inspected);
      }
      const isWaiting = lines.length === 0; // no input for a while
      if (isWaiting || performance.now() - since > MAX_WAIT_MS) await settle();
    }
    await settle();
  }

  /** Settles lines with different tokens, in order. */
  async #settle(batch: readonly (Candidate | Unreadable)[]): Promise<void> {
    const tokens = batch.flatMap((line) => line.record === undefined ? [] : line.token ?? []);
    const found = await this.#storage.catalogue.findAll(tokens);
    for (const inspected of batch) {
      this.#options.signal.throwIfAborted();
      const { line, record } = inspected;
      if (record === undefined) this.#concluded.push({ line, outcome: inspected.fault });
      else await this.#conclude(inspected, found.get(inspected.token as Token));
    }
    await this.#add();
  }

  async #conclude(
    { line, record, token }: Candidate,
    known: CatalogueEntry | undefined,
  ): Promise<void> {
    const entry = entryFor(record, token as Token, Date.now());
    const wanted = entry === undefined ? undefined : { token: token as Token, entry, record };
    if (wanted !== undefined && known === undefined) {
      this.#concluded.push({ line, wanted });
      return;
    }
    const isAlone = wanted === undefined || isUnpublishing(wanted, known);
    if (isAlone) await this.#add(); // this line must see the effect of those before it
    const outcome = await this.#outcomeOf(() =>
      wanted === undefined
        ? importContent(this.#storage, record as ContentRecord, token, this.#options)
        : this.#compare(wanted, known as CatalogueEntry)
    );
    this.#concluded.push({ line, outcome });
  }

  /** Adds the entries of the concluded lines, and reports the outcome of each line. */
  async #add(): Promise<void> {
    const concluded = this.#concluded;
    this.#concluded = [];
    type Waiting = Concluded & { readonly wanted: Wanted };
    let waiting = concluded.filter((line): line is Waiting => line.wanted !== undefined);
    while (waiting.length > 0) {
      const { added, faults } = await this.#addAll(waiting.map(({ wanted }) => wanted));
      const others: Waiting[] = [];
      for (const line of waiting) {
        const fault = faults.get(line.wanted.token);
        if (fault !== undefined) line.outcome = new RecordError(fault.message);
        else if (added.has(line.wanted.token)) line.outcome = "added";
        else others.push(line); // another process was first
      }
      waiting = [];
      const found = await this.#storage.catalogue.findAll(others.map(({ wanted }) => wanted.token));
      for (const line of others) {
        const known = found.get(line.wanted.token);
        if (known === undefined) waiting.push(line);
        else line.outcome = await this.#outcomeOf(() => this.#compare(line.wanted, known));
      }
    }
    for (const { line, outcome } of concluded) {
      if (typeof outcome === "string") this.outcomes[outcome]++;
      else {
        await this.#options.refuse(line, outcome);
        if (outcome !== undefined) this.outcomes.refused++;
      }
      this.#options.advance(line.bytes.length);
    }
  }

  /** Returns an outcome, or why the record is refused. */
  async #outcomeOf(
    conclude: () => Promise<"added" | "unchanged">,
  ): Promise<"added" | "unchanged" | RecordError> {
    try {
      return await conclude();
    } catch (error) {
      if (error instanceof StorageError || this.#options.signal.aborted) throw error;
      return refusalOf(error);
    }
  }

  async #addAll(wanted: readonly Wanted[]) {
    const records = wanted.map(({ token, entry }) => [token, entry] as const);
    return await this.#storage.addAll(records, this.#options.isDryRun);
  }

  /**
   * Compares a record with the entry of its token; a tombstone unpublishes.
   *
   * @throws {RecordError} When they differ.
   */
  async #compare(wanted: Wanted, known: CatalogueEntry): Promise<"added" | "unchanged"> {
    const { token, entry, record } = wanted;
    let found = known;
    if (isUnpublishing(wanted, known)) {
      requireSame({ kind: entry.kind }, token, known);
      const { isDryRun } = this.#options;
      if (isDryRun || await this.#storage.unpublish(token, wanted.entry.unpublishedAt)) {
        this.outcomes.unpublished++;
        return "added";
      }
      found = (await this.#storage.catalogue.findAll([token])).get(token) ?? known; // another was first
    }
    requireSame({ ...factsOf(token, entry), ...instantsOf(record) }, token, found);
    return "unchanged";
  }
}

/** Returns why a line is refused, whatever went wrong with it. */
function refusalOf(error: unknown): RecordError {
  return error instanceof RecordError ? error : new RecordError(messageOf(error as Error));
}

/** Whether a record is the tombstone of an item that is still published. */
function isUnpublishing(
  wanted: Wanted,
  known: CatalogueEntry | undefined,
): wanted is Wanted & { readonly entry: CatalogueEntry & { readonly state: "unpublished" } } {
  return wanted.entry.state === "unpublished" && known !== undefined &&
    known.state !== "unpublished";
}

/** Reads the record of a line; returns `undefined` for a blank one. */
function inspectLine(line: ImportLine, isContinued: boolean): Candidate | Unreadable | undefined {
  if (!line.isWhole) {
    const fault = new RecordError(`the line is longer than ${MAX_LINE} bytes`);
    return { line, fault: isContinued ? undefined : fault };
  }
  if (line.bytes.every((byte) => BLANK.includes(byte))) return undefined;
  try {
    const record = readRecord(parseLine(line.bytes));
    return { line, record, token: record.token ?? derivedTokenOf(record) };
  } catch (error) {
    return { line, fault: refusalOf(error) };
  }
}

/** JSON's white space. */
const BLANK = [0x20, 0x09, 0x0a, 0x0d];

/** Reads the input. An empty chunk means that nothing arrived for a while. */
async function* readInput(
  input: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = input.getReader();
  try {
    for (;;) {
      const reading = unlessAborted(reader.read(), signal);
      while (!await fulfilledWithin(MAX_WAIT_MS, reading)) yield new Uint8Array();
      const { value } = await reading;
      if (value === undefined) return;
      for (let at = 0; at < value.length; at += CHUNK) yield value.subarray(at, at + CHUNK);
    }
  } finally {
    reader.cancel().catch(() => {}); // cancelling standard input may never finish
  }
}
