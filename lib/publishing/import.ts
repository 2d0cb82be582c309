/**
 * Importing records, one per line. Each line gets one outcome.
 *
 * Records that are already in the catalogue are settled at once, some hundred lines at a time. The
 * rest is buffered, and sorted by token before it is added.
 */

import type { MediaStorage } from "../storage/media_storage.ts";
import type { CatalogueEntry } from "../storage/storage.ts";
import type { Token } from "../storage/token.ts";
import { fulfilledWithin } from "../storage/deadline.ts";
import { unlessAborted } from "./abort.ts";
import { type ContentOptions, type ContentRecord, importContent } from "./import_content.ts";
import {
  derivedTokenOf,
  entryFor,
  factsOf,
  instantsOf,
  isOnRecord,
  requireSame,
  tokenIn,
} from "./import_facts.ts";
import { type ImportLine, MAX_LINE, readLines } from "./import_lines.ts";
import {
  type ImportRecord,
  parseLine,
  type RawRecord,
  readRecord,
  RecordError,
} from "./import_record.ts";
import { type CollectedLine, ImportWindow } from "./import_window.ts";

/** Milliseconds after which lines are settled when input arrives slowly. */
const MAX_WAIT = 2_000;

/** Bytes to process at a time. */
const CHUNK = 64 * 1024;

/** Lines per lookup, and records per transaction, which blocks other publishers. */
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

/** A line that could be parsed. The token is left out if it depends on the content. */
interface Candidate {
  readonly line: ImportLine;
  readonly raw: RawRecord;
  readonly token: Token | undefined;
}

/** A line that could not be parsed; later pieces of a line that is too long have no fault. */
interface Unreadable {
  readonly line: ImportLine;
  readonly raw?: undefined;
  readonly fault: RecordError | undefined;
}

/** What is known of a line before its lookup. */
type InspectedLine = Candidate | Unreadable;

/** A record to add to the catalogue as it is. */
interface Wanted {
  readonly line: ImportLine;
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
  readonly #window = new ImportWindow();

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
    let batch: InspectedLine[] = [];
    let tokens = new Set<Token>();
    let sifting = Promise.resolve();
    // A batch is looked up while the next one is read.
    const sift = async () => {
      const inspected = batch;
      [batch, tokens] = [[], new Set()];
      await sifting;
      sifting = this.#sift(inspected);
      sifting.catch(() => {}); // reported where it is awaited
    };
    let cut = 0;
    for await (const lines of readLines(readAll(input, this.#options.signal))) {
      for (const line of lines) {
        const inspected = inspectLine(line, line.number === cut);
        if (!line.isWhole) cut = line.number;
        if (inspected === undefined) {
          this.#options.advance(line.bytes.length);
          continue;
        }
        const token = inspected.raw === undefined ? undefined : inspected.token;
        // A lookup must see the effect of earlier lines with the same token.
        if (batch.length === BATCH || token !== undefined && tokens.has(token)) await sift();
        if (token !== undefined) tokens.add(token);
        batch.push(inspected);
      }
      if (lines.length === 0) await sift(); // no input for a while
      if (this.#window.age > MAX_WAIT) {
        await sifting;
        await this.#settle();
      }
    }
    await sift();
    await sifting;
    await this.#settle();
  }

  /** Settles lines that are already on record, and buffers the rest. */
  async #sift(batch: readonly InspectedLine[]): Promise<void> {
    this.#options.signal.throwIfAborted();
    const tokens = batch.flatMap((inspected) =>
      inspected.raw === undefined ? [] : inspected.token ?? []
    );
    if (tokens.some((token) => this.#window.has(token))) await this.#settle();
    const found = await this.#storage.lookUpAll(tokens);
    for (const inspected of batch) {
      if (inspected.raw === undefined) await this.#refuse(inspected.line, inspected.fault);
      else await this.#conclude(inspected, found.get(inspected.token as Token));
    }
  }

  async #conclude(
    { line, raw, token }: Candidate,
    known: CatalogueEntry | undefined,
  ): Promise<void> {
    const isFile = token === undefined || "path" in raw;
    if (token !== undefined && known !== undefined && isOnRecord(raw, token, known)) {
      this.#count(line, "unchanged");
    } else if (known !== undefined && !isFile) {
      const wanted = await this.#want({ line, raw, token });
      if (wanted !== undefined) await this.#compare(wanted, known);
    } else if (!this.#window.add(line, token, isFile)) {
      await this.#settle();
      this.#window.add(line, token, isFile);
    }
  }

  /** Adds the buffered lines. */
  async #settle(): Promise<void> {
    const window = this.#window;
    const read = (collected: CollectedLine): Candidate => {
      const line = window.lineOf(collected);
      return { line, raw: parseLine(line.bytes), token: collected.token };
    };
    // Files first: other records may refer to their content.
    for (const file of window.files) await this.#want(read(file));
    const records = window.sorted();
    let at = 0;
    const work = async () => {
      while (at < records.length) await this.#addAll(records.slice(at, at += BATCH).map(read));
    };
    // The database adds one batch while the next one is checked.
    const ends = await Promise.allSettled([work(), work()]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    window.clear();
  }

  /** Returns what a line wants on record, or nothing if it already has an outcome. */
  async #want({ line, raw, token }: Candidate): Promise<Wanted | undefined> {
    this.#options.signal.throwIfAborted();
    let wanted: Wanted | undefined;
    await this.#unlessRefused(line, async () => {
      const record = readRecord(raw);
      const entry = entryFor(record, token as Token, Date.now());
      if (entry !== undefined) wanted = { line, token: token as Token, entry, record };
      else {
        const content = record as ContentRecord;
        this.#count(line, await importContent(this.#storage, content, token, this.#options));
      }
    });
    return wanted;
  }

  /** Adds records that copy no content. */
  async #addAll(candidates: readonly Candidate[]): Promise<void> {
    let wanted: Wanted[] = [];
    for (const candidate of candidates) {
      const item = await this.#want(candidate);
      if (item !== undefined) wanted.push(item);
    }
    while (wanted.length > 0) {
      const { added, faults } = await this.#add(wanted);
      const others: Wanted[] = [];
      for (const item of wanted) {
        const fault = faults.get(item.token);
        if (fault !== undefined) await this.#refuse(item.line, new RecordError(fault.message));
        else if (added.has(item.token)) this.#count(item.line, "added");
        else others.push(item); // another process was first
      }
      wanted = [];
      const found = await this.#storage.lookUpAll(others.map(({ token }) => token));
      for (const item of others) {
        const known = found.get(item.token);
        if (known === undefined) wanted.push(item);
        else await this.#compare(item, known);
      }
    }
  }

  async #add(wanted: readonly Wanted[]) {
    const records = wanted.map(({ token, entry }) => [token, entry] as const);
    if (!this.#options.isDryRun) return await this.#storage.addAll(records);
    const faults = await this.#storage.contentFaults(records);
    return { added: new Set(wanted.map(({ token }) => token)), faults };
  }

  /** Compares a record with the entry of its token; a tombstone unpublishes. */
  async #compare({ line, token, entry, record }: Wanted, known: CatalogueEntry): Promise<void> {
    const facts = { ...factsOf(token, entry), ...instantsOf(record) };
    await this.#unlessRefused(line, async () => {
      let found = known;
      if (entry.state === "unpublished" && known.state !== "unpublished") {
        requireSame({ kind: entry.kind }, token, known);
        const { isDryRun } = this.#options;
        if (isDryRun || await this.#storage.unpublish(token, entry.unpublishedAt)) {
          this.outcomes.unpublished++;
          return this.#count(line, "added");
        }
        found = (await this.#storage.lookUpAll([token])).get(token) ?? known;
      }
      requireSame(facts, token, found);
      this.#count(line, "unchanged");
    });
  }

  /** Settles a line; a {@linkcode RecordError} makes it refused. */
  async #unlessRefused(line: ImportLine, conclude: () => Promise<void>): Promise<void> {
    try {
      await conclude();
    } catch (error) {
      if (!(error instanceof RecordError)) throw error;
      await this.#refuse(line, error);
    }
  }

  async #refuse(line: ImportLine, reason: RecordError | undefined): Promise<void> {
    await this.#options.refuse(line, reason);
    if (reason === undefined) this.#options.advance(line.bytes.length);
    else this.#count(line, "refused");
  }

  #count(line: ImportLine, outcome: keyof ImportCounts): void {
    this.outcomes[outcome]++;
    this.#options.advance(line.bytes.length);
  }
}

/** Parses a line as far as its lookup needs; returns `undefined` for a blank one. */
function inspectLine(line: ImportLine, isContinued: boolean): InspectedLine | undefined {
  if (!line.isWhole) {
    const fault = new RecordError(`the line is longer than ${MAX_LINE} bytes`);
    return { line, fault: isContinued ? undefined : fault };
  }
  if (line.bytes.every((byte) => BLANK.includes(byte))) return undefined;
  try {
    const raw = parseLine(line.bytes);
    return { line, raw, token: tokenIn(raw) ?? derivedTokenOf(readRecord(raw)) };
  } catch (error) {
    if (error instanceof RecordError) return { line, fault: error };
    throw error;
  }
}

/** JSON's white space. */
const BLANK = [0x20, 0x09, 0x0a, 0x0d];

/** Reads the input. An empty chunk means that nothing arrived for a while. */
async function* readAll(
  input: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = input.getReader();
  try {
    for (;;) {
      const reading = unlessAborted(reader.read(), signal);
      while (!await fulfilledWithin(MAX_WAIT, reading)) yield new Uint8Array();
      const { value } = await reading;
      if (value === undefined) return;
      for (let at = 0; at < value.length; at += CHUNK) yield value.subarray(at, at + CHUNK);
    }
  } finally {
    reader.cancel().catch(() => {}); // cancelling standard input may never finish
  }
}
