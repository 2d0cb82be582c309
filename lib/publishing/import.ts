/**
 * Importing: from lines of records to items, each line with one outcome.
 *
 * What is on record already is told at once, some hundred lines at a time. The rest is collected, and
 * sorted by token before it goes to the catalogue.
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

/** Milliseconds after which lines are settled, of input that comes slowly. */
const MAX_WAIT = 2_000;

/** Bytes that are read at a time. */
const CHUNK = 64 * 1024;

/** Records in one transaction, which keeps other publishers waiting; and lines in one lookup. */
const BATCH = 500;

/** How many records had which outcome. */
export interface ImportCounts {
  added: number;
  unchanged: number;
  refused: number;
  /** Tombstones among those added, of items that were published until then. */
  unpublished: number;
}

/** What an import works with. */
export interface ImportOptions extends ContentOptions {
  /** Is told of each line that is refused; further pieces of one that is too long have no reason. */
  readonly refuse: (line: ImportLine, reason?: RecordError) => Promise<void>;
  /** Is told how many bytes of the input are done with. */
  readonly advance: (bytes: number) => void;
}

/** A line that can be read; the token is left out where only the content tells it. */
interface Candidate {
  readonly line: ImportLine;
  readonly raw: RawRecord;
  readonly token: Token | undefined;
}

/** A line that cannot be read; further pieces of one that is too long have no fault. */
interface Unreadable {
  readonly line: ImportLine;
  readonly raw?: undefined;
  readonly fault: RecordError | undefined;
}

/** What is known of a line before it is looked up. */
type InspectedLine = Candidate | Unreadable;

/** A record that is to be on record as it is. */
interface Wanted {
  readonly line: ImportLine;
  readonly token: Token;
  readonly entry: CatalogueEntry;
  /** What the entry was made of. */
  readonly record: ImportRecord;
}

/** Imports records. */
export class Importer {
  /** So far. */
  readonly outcomes: ImportCounts = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
  readonly #storage: MediaStorage;
  readonly #options: ImportOptions;
  readonly #window = new ImportWindow();

  constructor(storage: MediaStorage, options: ImportOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /**
   * Imports all records of an input.
   *
   * @throws {StorageError} When storage fails; whatever has an outcome keeps it.
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
      sifting.catch(() => {}); // whoever waits for it is told
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
        // What is on record when a line is looked up has to be what those before it left.
        if (batch.length === BATCH || token !== undefined && tokens.has(token)) await sift();
        if (token !== undefined) tokens.add(token);
        batch.push(inspected);
      }
      if (lines.length === 0) await sift(); // nothing came for a while
      if (this.#window.age > MAX_WAIT) {
        await sifting;
        await this.#settle();
      }
    }
    await sift();
    await sifting;
    await this.#settle();
  }

  /** Concludes what is on record already, and collects the rest. */
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

  /** Adds what was collected. */
  async #settle(): Promise<void> {
    const window = this.#window;
    const read = (collected: CollectedLine): Candidate => {
      const line = window.lineOf(collected);
      return { line, raw: parseLine(line.bytes), token: collected.token };
    };
    // First of all content that other records may refer to.
    for (const file of window.files) await this.#want(read(file));
    const records = window.sorted();
    let at = 0;
    const work = async () => {
      while (at < records.length) await this.#addAll(records.slice(at, at += BATCH).map(read));
    };
    // A database adds one batch while the next one is checked.
    const ends = await Promise.allSettled([work(), work()]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    window.clear();
  }

  /** What a line wants to be on record; nothing when it has an outcome already. */
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

  /** Adds what takes nothing in. */
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
        else others.push(item); // somebody else was first
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

  /** Holds a record against what its token has on record; a tombstone unpublishes. */
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

  /** Concludes a line; what is wrong with it is its outcome. */
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

/** Reads a line as far as it takes to look it up; `undefined` for a blank one. */
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

/** White space of JSON. */
const BLANK = [0x20, 0x09, 0x0a, 0x0d];

/** Reads an input; what is empty says that nothing came for a while. */
async function* readAll(
  input: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = input.getReader();
  try {
    for (;;) {
      const reading = reader.read();
      while (!await fulfilledWithin(MAX_WAIT, unlessAborted(reading, signal))) {
        yield new Uint8Array();
      }
      const { value } = await reading;
      if (value === undefined) return;
      for (let at = 0; at < value.length; at += CHUNK) yield value.subarray(at, at + CHUNK);
    }
  } finally {
    reader.cancel().catch(() => {}); // standard input may never answer
  }
}
