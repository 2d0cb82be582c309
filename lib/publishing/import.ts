/**
 * Importing: from lines of records to items, each line with one outcome.
 *
 * Records are collected and sorted by token before they go to the catalogue, in transactions of a
 * thousand: added as they come, random tokens would have the database write a page for each.
 */

import type { MediaStorage } from "../storage/media_storage.ts";
import { type Entry, StorageError } from "../storage/storage.ts";
import type { Token } from "../storage/token.ts";
import { unlessAborted } from "./abort.ts";
import {
  derivedToken,
  differenceOf,
  entryFor,
  type Facts,
  factsOf,
  isOnRecord,
  tokenIn,
} from "./import_facts.ts";
import { type Line, MAX_LINE, readLines } from "./import_lines.ts";
import { type ImportRecord, parseLine, readRecord, RecordError } from "./import_record.ts";
import { fileName, inspectFile, publishFile, RefusedError, type Watch } from "./publish.ts";
import { publishObject } from "./publish_object.ts";

/** Lines that are collected before they are sorted, and bytes of them. */
const [LINES, LINE_BYTES] = [30_000, 8 * 1024 * 1024];

/** Milliseconds for which they are collected, of input that comes slowly. */
const PATIENCE = 2_000;

/** Bytes that are read at a time. */
const CHUNK = 64 * 1024;

/** Records in one transaction, which keeps other publishers waiting. */
const BATCH = 1_000;

/** How many records had which outcome. */
export interface Outcomes {
  added: number;
  unchanged: number;
  refused: number;
  /** Tombstones among those added, of items that were published until then. */
  unpublished: number;
}

/** What an import works with. */
export interface ImportOptions {
  /** Finds out what would be done, and does nothing. */
  readonly isDryRun: boolean;
  /** Ends the work between two records. */
  readonly signal: AbortSignal;
  /** Where a path of a record is. */
  readonly resolve: (path: string) => string;
  /** Is told of each line that is refused; further pieces of one that is too long have no reason. */
  readonly refuse: (line: Line, reason?: RecordError) => Promise<void>;
  /** Is told how many bytes of the input are done with. */
  readonly advance: (bytes: number) => void;
  /** Passes the content of files on, to watch how the work goes on. */
  readonly watch?: Watch;
}

/** What is known of a line before its record is checked. */
type Glance =
  /** It cannot be read; further pieces of a line that is too long have no reason. */
  | { readonly is: "unreadable"; readonly reason: RecordError | undefined }
  /** It may have to be read from a file; the token is left out where only the content tells it. */
  | { readonly is: "file"; readonly token: Token | undefined }
  | { readonly is: "record"; readonly token: Token };

/** A line with a record whose token is known. */
interface Candidate {
  readonly line: Line;
  readonly token: Token;
}

/** A record that is to be on record as it is. */
interface Wanted {
  readonly line: Line;
  readonly token: Token;
  readonly entry: Entry;
  /** What the entry was made of. */
  readonly record: ImportRecord;
}

/** A line among many. */
interface Collected {
  readonly glance: Glance;
  readonly number: number;
  readonly isWhole: boolean;
  readonly start: number;
  readonly end: number;
}

/** Lines that are sorted together: each token is there once at most. */
class Window {
  /** The lines one after the other: as objects, with what they hold, they take many times as much. */
  readonly #bytes = new Uint8Array(LINE_BYTES);
  readonly #tokens = new Set<Token>();
  #lines: Collected[] = [];
  #end = 0;
  #since = 0;

  /** Whether it is time to settle what was collected. */
  get isDue(): boolean {
    return this.#lines.length > 0 && performance.now() - this.#since > PATIENCE;
  }

  /** The lines, in the order in which they came. */
  get lines(): readonly Collected[] {
    return this.#lines;
  }

  /** Adds a line, unless it has to wait until those before it are settled. */
  add({ number, bytes, isWhole }: Line, glance: Glance): boolean {
    const token = glance.is === "unreadable" ? undefined : glance.token;
    if (this.#lines.length === LINES || this.#end + bytes.length > LINE_BYTES) return false;
    if (token !== undefined && this.#tokens.has(token)) return false;
    if (this.#lines.length === 0) this.#since = performance.now();
    if (token !== undefined) this.#tokens.add(token);
    this.#bytes.set(bytes, this.#end);
    this.#lines.push({ glance, number, isWhole, start: this.#end, end: this.#end += bytes.length });
    return true;
  }

  /** A line as it was; valid until {@linkcode Window.clear}. */
  lineOf({ number, isWhole, start, end }: Collected): Line {
    return { number, isWhole, bytes: this.#bytes.subarray(start, end) };
  }

  /** Starts anew. */
  clear(): void {
    this.#tokens.clear();
    this.#lines = [];
    this.#end = 0;
  }
}

/** Imports records. */
export class Importer {
  /** So far. */
  readonly outcomes: Outcomes = { added: 0, unchanged: 0, refused: 0, unpublished: 0 };
  readonly #storage: MediaStorage;
  readonly #options: ImportOptions;

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
    const window = new Window();
    let cut = 0;
    for await (const lines of readLines(readAll(input, this.#options.signal))) {
      for (const line of lines) {
        const glance = glanceAt(line, line.number === cut);
        if (!line.isWhole) cut = line.number;
        if (glance === undefined) this.#options.advance(line.bytes.length);
        else if (!window.add(line, glance)) {
          await this.#settle(window);
          window.add(line, glance);
        }
      }
      if (window.isDue) await this.#settle(window);
    }
    await this.#settle(window);
  }

  async #settle(window: Window): Promise<void> {
    const records: { readonly token: Token; readonly collected: Collected }[] = [];
    const files: { readonly token: Token | undefined; readonly collected: Collected }[] = [];
    for (const collected of window.lines) {
      const { glance } = collected;
      if (glance.is === "record") records.push({ token: glance.token, collected });
      else if (glance.is === "file") files.push({ token: glance.token, collected });
      else await this.#refuse(window.lineOf(collected), glance.reason);
    }
    // First of all content that other records may refer to.
    for (const { token, collected } of files) await this.#takeIn(window.lineOf(collected), token);
    records.sort((one, other) => one.token < other.token ? -1 : 1);
    let at = 0;
    const work = async () => {
      while (at < records.length) {
        await this.#addAll(
          records.slice(at, at += BATCH)
            .map(({ token, collected }) => ({ token, line: window.lineOf(collected) })),
        );
      }
    };
    // A database adds one batch while the next one is looked up and checked.
    const ends = await Promise.allSettled([work(), work()]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    window.clear();
  }

  /** Adds what takes nothing in. */
  async #addAll(candidates: readonly Candidate[]): Promise<void> {
    this.#options.signal.throwIfAborted();
    let found = await this.#storage.lookUpAll(candidates.map(({ token }) => token));
    let wanted: Wanted[] = [];
    const now = Date.now();
    for (const { line, token } of candidates) {
      const raw = parseLine(line.bytes);
      const known = found.get(token);
      if (known !== undefined && isOnRecord(raw, token, known)) {
        this.#count(line, "unchanged");
        continue;
      }
      try {
        const record = readRecord(raw);
        const entry = entryFor(record, token, now);
        if (entry === undefined) await this.#takeIn(line, token);
        else wanted.push({ line, token, entry, record });
      } catch (error) {
        if (!(error instanceof RecordError)) throw error;
        await this.#refuse(line, error);
      }
    }
    for (;;) {
      const unknown: Wanted[] = [];
      for (const item of wanted) {
        const known = found.get(item.token);
        if (known === undefined) unknown.push(item);
        else await this.#compare(item, known);
      }
      if (unknown.length === 0) return;
      const { added, faults } = await this.#add(unknown);
      wanted = [];
      for (const item of unknown) {
        const fault = faults.get(item.token);
        if (fault !== undefined) await this.#refuse(item.line, new RecordError(fault.message));
        else if (added.has(item.token)) this.#count(item.line, "added");
        else wanted.push(item); // somebody else was first
      }
      found = await this.#storage.lookUpAll(wanted.map(({ token }) => token));
    }
  }

  async #add(wanted: readonly Wanted[]) {
    const records = wanted.map(({ token, entry }) => [token, entry] as const);
    if (!this.#options.isDryRun) return await this.#storage.addAll(records);
    const faults = await this.#storage.contentFaults(records);
    return { added: new Set(wanted.map(({ token }) => token)), faults };
  }

  /** Holds a record against what its token has on record; a tombstone unpublishes. */
  async #compare({ line, token, entry, record }: Wanted, known: Entry): Promise<void> {
    const facts = { ...factsOf(token, entry), ...implied(record) };
    if (entry.state !== "unpublished" || known.state === "unpublished") {
      return await this.#conclude(line, token, known, facts);
    }
    const difference = differenceOf({ kind: entry.kind }, token, known);
    if (difference !== undefined) return await this.#refuse(line, difference);
    if (!this.#options.isDryRun && !await this.#storage.unpublish(token, entry.unpublishedAt)) {
      const now = await this.#find(token); // somebody else was first
      return await this.#conclude(line, token, now ?? known, facts);
    }
    this.outcomes.unpublished++;
    this.#count(line, "added");
  }

  /** Publishes a file, or an object of which not everything is stated. */
  async #takeIn(line: Line, token: Token | undefined): Promise<void> {
    this.#options.signal.throwIfAborted();
    try {
      const record = readRecord(parseLine(line.bytes));
      if (record.source === "file") await this.#takeInFile(line, record, token);
      else if (record.source === "object") await this.#takeInObject(line, record, token as Token);
    } catch (error) {
      if (error instanceof RecordError) await this.#refuse(line, error);
      else if (error instanceof RefusedError) {
        const { cause } = error;
        const because = cause instanceof Error ? ` (${cause.message})` : "";
        await this.#refuse(line, new RecordError(error.message + because));
      } else throw error;
    }
  }

  async #takeInFile(
    line: Line,
    record: ImportRecord & { source: "file" },
    token: Token | undefined,
  ): Promise<void> {
    const { isDryRun, resolve, signal, watch } = this.#options;
    const path = resolve(record.path);
    const { kind, type, length, sha256, language, publishedAt, name = fileName(path) } = record;
    const options = { kind, type, signal, ...(watch === undefined ? {} : { watch }) };
    let facts: Facts = { kind, type, length, sha256, name, language: language ?? null };
    let known = token === undefined ? undefined : await this.#find(token);
    // What the record states of content is enough to tell that it is on record.
    if (
      sha256 === undefined && (token === undefined || known !== undefined) || isDryRun && !known
    ) {
      const { digest, ...found } = await inspectFile(path, options);
      requireStated(record.path, facts, { ...found, sha256: digest });
      facts = { ...facts, ...found, sha256: digest };
      token ??= derivedToken(digest, name);
      known ??= await this.#find(token);
    }
    if (known !== undefined) {
      return await this.#conclude(line, token as Token, known, { ...facts, ...implied(record) });
    }
    if (!isDryRun) {
      await publishFile(this.#storage, path, {
        ...options,
        ...{ token, name, language, publishedAt },
        expected: { digest: facts["sha256"] as string | undefined, length },
      });
    }
    this.#count(line, "added");
  }

  async #takeInObject(
    line: Line,
    record: ImportRecord & { source: "object" },
    token: Token,
  ): Promise<void> {
    const { location, kind, type, length, sha256, validator, language, publishedAt } = record;
    const { name = fileName(location) } = record;
    const known = await this.#find(token);
    if (known !== undefined) {
      const stated = { location, kind, type, length, sha256, validator, name };
      const facts = { ...stated, language: language ?? null, ...implied(record) };
      return await this.#conclude(line, token, known, facts);
    }
    const { isDryRun, signal, watch } = this.#options;
    try {
      if (!isDryRun) {
        await publishObject(this.#storage, location, {
          ...{ token, kind, type, name, language, publishedAt, signal },
          ...(watch === undefined ? {} : { watch }),
          expected: { digest: sha256, length, validator },
        });
      }
      this.#count(line, "added");
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      await this.#storage.prepare(); // which fails when the fault is not that of one object
      throw new RecordError(error.message);
    }
  }

  async #conclude(line: Line, token: Token, known: Entry, facts: Facts): Promise<void> {
    const difference = differenceOf(facts, token, known);
    if (difference === undefined) this.#count(line, "unchanged");
    else await this.#refuse(line, difference);
  }

  async #find(token: Token): Promise<Entry | undefined> {
    return (await this.#storage.lookUpAll([token])).get(token);
  }

  async #refuse(line: Line, reason: RecordError | undefined): Promise<void> {
    await this.#options.refuse(line, reason);
    if (reason === undefined) this.#options.advance(line.bytes.length);
    else this.#count(line, "refused");
  }

  #count(line: Line, outcome: keyof Outcomes): void {
    this.outcomes[outcome]++;
    this.#options.advance(line.bytes.length);
  }
}

/** Reads a line as far as it takes to know its token; `undefined` for a blank one. */
function glanceAt(line: Line, isContinued: boolean): Glance | undefined {
  if (!line.isWhole) {
    const reason = new RecordError(`the line is longer than ${MAX_LINE} bytes`);
    return { is: "unreadable", reason: isContinued ? undefined : reason };
  }
  if (line.bytes.every((byte) => BLANK.includes(byte))) return undefined;
  try {
    const raw = parseLine(line.bytes);
    const token = tokenIn(raw) ?? tokenOf(readRecord(raw));
    return token === undefined || "path" in raw ? { is: "file", token } : { is: "record", token };
  } catch (error) {
    if (error instanceof RecordError) return { is: "unreadable", reason: error };
    throw error;
  }
}

/** White space of JSON. */
const BLANK = [0x20, 0x09, 0x0a, 0x0d];

/** The token that a record without one gets, as far as the record alone tells it. */
function tokenOf(record: ImportRecord): Token | undefined {
  switch (record.source) {
    case "tombstone":
      return record.token;
    case "file": {
      const { sha256, path, name = fileName(path) } = record;
      return sha256 === undefined ? undefined : derivedToken(sha256, name);
    }
    case "content":
      return derivedToken(record.sha256, record.name);
    default:
      return derivedToken(record.location);
  }
}

/** The instant that a record states, or else nothing to compare. */
function implied(record: ImportRecord): Facts {
  if (record.source === "tombstone") return { unpublishedAt: dated(record.unpublishedAt) };
  return { publishedAt: dated(record.publishedAt) };
}

function dated(instant: number | undefined): string | undefined {
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/** Makes sure that a file is what its record states. */
function requireStated(path: string, stated: Facts, found: Facts): void {
  for (const [name, value] of Object.entries(found)) {
    const expected = stated[name];
    if (expected === undefined || expected === value) continue;
    throw new RecordError(`${JSON.stringify(path)} has ${JSON.stringify(value)}`, name, expected);
  }
}

async function* readAll(
  input: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = input.getReader();
  try {
    for (;;) {
      const { value } = await unlessAborted(reader.read(), signal);
      if (value === undefined) return;
      for (let at = 0; at < value.length; at += CHUNK) yield value.subarray(at, at + CHUNK);
    }
  } finally {
    reader.cancel().catch(() => {}); // standard input may never answer
  }
}
