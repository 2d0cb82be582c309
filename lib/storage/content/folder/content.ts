/**
 * Content-addressed files: the bytes of published items, each stored once under its digest.
 *
 *     <folder>/ab/abcd…    content, named by its SHA-256
 *     <folder>/staged/     content being published; each file is locked by its writer
 *     <folder>/unsettled/  digests whose content is being added or removed
 *     <folder>/lock        locked while any of the above changes; contains the store's identifier
 *
 * Locks are the operating system's (flock), so a killed process holds none, and the next writer
 * recognises and removes its leftovers. Everything in <folder> gets the mode of <folder>, because
 * servers must be able to read the content, whoever published it with whatever umask.
 *
 * Whoever may write in <folder> can put anything there, so only names like the above are removed,
 * and links in their place are refused (own_entries.ts).
 */

import { dirname } from "node:path";
import { type Patience, waitFor } from "../../../async/abort.ts";
import { StorageError } from "../../../errors/storage_error.ts";
import type { ByteRange } from "../../../http/byte_range.ts";
import type { Body } from "../../../http/outcome.ts";
import { writeAll } from "../../../input/write_all.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import {
  type Comparison,
  type Content,
  type Leftover,
  MAX_AT_ONCE_BYTES,
  type PlainStore,
  type Source,
} from "../content_store.ts";
import type { ContentReference } from "../../item.ts";
import { requireOwner } from "../../owner.ts";
import type { OnFault } from "../../storage.ts";
import { readAtOnce, streamPart } from "./file_part.ts";
import { createOwn, ifPresent, makeOwnFolder, openOwn, statOwn } from "./own_entries.ts";

const IS_DIGEST = /^[0-9a-f]{64}$/;
const IS_STAGED = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class FolderContent implements PlainStore {
  readonly kind = "folder";
  readonly #folder: string;
  readonly #catalogue: Pick<Catalogue, "usesAfterChanges">;
  readonly #patience: Patience;
  #isSwept = false;

  constructor(
    folder: string,
    catalogue: Pick<Catalogue, "usesAfterChanges">,
    patience: Patience = {},
  ) {
    this.#folder = folder;
    this.#catalogue = catalogue;
    this.#patience = patience;
  }

  id(): Promise<string | undefined> {
    return this.#attempt("read", async () => {
      const isThere = await statOwn(this.#lock, "file") !== undefined;
      return isThere ? await ifPresent(Deno.readTextFile(this.#lock)) : undefined;
    });
  }

  create(id: string): Promise<void> {
    return this.#attempt("write to", async () => {
      await requireOwner(this.#folder, "CONTENT");
      await Deno.mkdir(this.#folder, { recursive: true });
      (await createOwn(this.#lock, await this.#modeOfFiles()))?.close();
      await this.#withLock(async (file) => {
        if (await this.id() !== "") return;
        if (((await file.stat()).nlink ?? 1) > 1) {
          const fault = "is empty, and has another name, so it may be another file; delete it";
          throw new StorageError("files", `${JSON.stringify(this.#lock)} ${fault}`);
        }
        await writeAll(file, new TextEncoder().encode(id));
      }, { read: true, write: true });
      await this.check(id);
    });
  }

  async check(id: string): Promise<void> {
    if (await this.id() === id) return;
    const fault = "is not the folder with the content of this catalogue";
    throw new StorageError("files", `${this.#location} ${fault}`);
  }

  /** Compares synchronously, because another thread would cost five times as much. */
  compare({ digest, length }: ContentReference): Promise<Comparison> {
    return Promise.try(() => {
      try {
        const { file, size } = this.#openFile(digest); // a file may exist and still be unreadable
        file.close();
        if (size === length) return { state: "same" };
        return { state: "different", reason: lengthFault(digest, size, length), kind: LENGTH };
      } catch (cause) {
        if (!(cause instanceof Deno.errors.NotFound)) throw faultOf(digest, cause);
        return { state: "missing", reason: `content ${digest} is missing`, kind: "is missing" };
      }
    });
  }

  open(
    { digest, length }: ContentReference,
    range?: ByteRange,
    onFault?: OnFault,
  ): Promise<Body> {
    return Promise.try(() => {
      const { first, last } = range ?? { first: 0, last: length - 1 };
      let opened: Deno.FsFile | undefined;
      try {
        const { file, size } = this.#openFile(digest);
        opened = file;
        if (size !== length) {
          throw new StorageError("files", lengthFault(digest, size, length), { kind: LENGTH });
        }
        if (first > 0) file.seekSync(first, Deno.SeekMode.Start);
        const count = last - first + 1;
        return count <= MAX_AT_ONCE_BYTES
          ? readAtOnce(file, count, digest)
          : streamPart(file, count, digest, onFault);
      } catch (cause) {
        opened?.close();
        throw faultOf(digest, cause);
      }
    });
  }

  /**
   * Copies content to a file that can be moved to its place, and is discarded if it is not. The
   * first call also removes the leftovers of killed processes.
   */
  async #stage(
    { digest }: Content,
    source: Source,
  ): Promise<AsyncDisposable & { readonly path: string }> {
    const folder = `${this.#folder}/staged`;
    const path = `${folder}/${crypto.randomUUID()}`;
    const file = await this.#exclusively(async () => {
      await makeOwnFolder(folder, await this.#mode());
      if (!this.#isSwept) await sweep(folder);
      this.#isSwept = true;
      const file = await createOwn(path, await this.#modeOfFiles());
      await file?.lock(true);
      return file;
    });
    if (file === undefined) throw new StorageError("files", `${path} is there already`);

    const discard = async () => {
      await ifPresent(Deno.remove(path));
      file.close();
    };
    try {
      const { createHash } = await import("node:crypto"); // not needed to serve
      const hash = createHash("sha256");
      for await (const chunk of source.read("copying")) {
        hash.update(chunk);
        await this.#attempt("write to", () => writeAll(file, chunk));
      }
      await this.#attempt("write to", () => file.sync());
      if (hash.digest("hex") === digest) return { path, [Symbol.asyncDispose]: discard };
      throw new StorageError("files", `content ${digest} changed before it was copied`);
    } catch (error) {
      await discard();
      throw error;
    }
  }

  /**
   * If the process is killed meanwhile, or content cannot be removed, the next change tries again.
   */
  async change<T>(content: Content, commit: () => Promise<T>, source?: Source): Promise<T> {
    const { digest } = content;
    await using staged = source && await this.#stage(content, source);
    return await this.#exclusively(async () => {
      await makeOwnFolder(this.#unsettled, await this.#mode());
      for (const each of await this.#unsettledDigests()) await this.#settle(each);
      await statOwn(dirname(this.#path(digest)), "folder"); // refused before the catalogue changes
      (await createOwn(this.#mark(digest), await this.#modeOfFiles()))?.close(); // one may be left
      try {
        if (staged !== undefined) await this.#place(digest, staged.path);
        return await commit();
      } finally {
        await this.#settle(digest).catch((error) => {
          if (!(error instanceof StorageError)) throw error; // what was committed stays so
        });
      }
    });
  }

  async deleteLeftovers(digest?: string): Promise<Leftover[]> {
    const left = async () =>
      (await this.#unsettledDigests()).filter((each) => digest === undefined || each === digest);
    const isAnyLeft = (await this.#attempt("read", left)).length > 0;
    if (!isAnyLeft) return []; // without waiting for the lock
    return await this.#exclusively(async () => {
      const leftovers: Leftover[] = [];
      for (const each of await left()) leftovers.push(await this.#settle(each));
      return leftovers;
    });
  }

  /** Returns the digests whose content may have to be removed. */
  async #unsettledDigests(): Promise<string[]> {
    if (await statOwn(this.#unsettled, "folder") === undefined) return [];
    const names = await Array.fromAsync(Deno.readDir(this.#unsettled), ({ name }) => name);
    return names.filter((name) => IS_DIGEST.test(name));
  }

  /** Removes content if no item uses it, and then its mark in `unsettled`. */
  async #settle(digest: string): Promise<Leftover> {
    const content = this.#path(digest);
    const mark = this.#mark(digest);
    let [path, isRemoved] = [content, false];
    try {
      if (!await this.#catalogue.usesAfterChanges(digest)) {
        await statOwn(dirname(content), "folder");
        isRemoved = await ifPresent(Deno.remove(content).then(() => true)) ?? false;
      }
      path = mark;
      await ifPresent(Deno.remove(mark));
      return { path: isRemoved ? content : mark };
    } catch (cause) {
      if (!isSystemError(cause)) throw cause;
      return { path, cause };
    }
  }

  async *list(): AsyncGenerator<string> {
    for (let number = 0; number < 256; number++) {
      const shard = number.toString(16).padStart(2, "0");
      const read = () => Array.fromAsync(Deno.readDir(`${this.#folder}/${shard}`));
      for (const { name } of await this.#attempt("read", () => ifPresent(read())) ?? []) {
        if (IS_DIGEST.test(name) && name.startsWith(shard)) yield name;
      }
    }
  }

  /** Requires no permission to write. */
  withoutRemovals<T>(action: () => Promise<T>): Promise<T> {
    return this.#withLock(action); // if it were shared, imports could keep publishers waiting
  }

  async close(): Promise<void> {}

  /**
   * Waits as long as it takes, because another program may hold the lock, too, such as a backup.
   */
  async #withLock<T>(
    action: (file: Deno.FsFile) => Promise<T>,
    options: Deno.OpenOptions = { read: true },
  ): Promise<T> {
    const name = `the lock of ${this.#location}`;
    using file = await openOwn(this.#lock, options).catch((cause) => {
      if (cause instanceof StorageError) throw cause;
      throw new StorageError("files", `${name} cannot be opened`, { cause });
    });
    await waitFor(`${name}, which another process holds`, file.lock(true), this.#patience);
    return await action(file);
  }

  #openFile(digest: string): { file: Deno.FsFile; size: number } {
    const path = this.#path(digest);
    const { isFile, size } = Deno.statSync(path);
    // Opening a pipe or a device would block the thread.
    if (isFile) return { file: Deno.openSync(path), size };
    throw new StorageError("files", `content ${digest} is not a regular file`, {
      kind: "not a regular file",
    });
  }

  /** Moves content to its place, and replaces any file there, because that may be damaged. */
  async #place(digest: string, path: string): Promise<void> {
    const shard = dirname(this.#path(digest));
    await makeOwnFolder(shard, await this.#mode());
    await Deno.rename(path, this.#path(digest));
    await syncFolder(shard);
    await syncFolder(this.#folder);
  }

  /** Returns the mode of the folder, for the folders in it. */
  async #mode(): Promise<number> {
    return ((await Deno.stat(this.#folder)).mode ?? 0o755) & 0o7777;
  }

  async #modeOfFiles(): Promise<number> {
    return await this.#mode() & 0o666;
  }

  #exclusively<T>(action: () => Promise<T>): Promise<T> {
    return this.#attempt("write to", async () => {
      await requireOwner(this.#folder, "CONTENT");
      return await this.#withLock(action);
    });
  }

  /** Runs an operation. If the system refuses it, the error names the folder. */
  async #attempt<T>(what: "read" | "write to", operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (cause) {
      if (!isSystemError(cause)) throw cause;
      throw new StorageError("files", `cannot ${what} ${this.#location}`, { cause });
    }
  }

  /** For messages. */
  get #location(): string {
    return `${JSON.stringify(this.#folder)} (CONTENT)`;
  }

  get #lock(): string {
    return `${this.#folder}/lock`;
  }

  get #unsettled(): string {
    return `${this.#folder}/unsettled`;
  }

  #mark(digest: string): string {
    return `${this.#unsettled}/${digest}`;
  }

  #path(digest: string): string {
    return `${this.#folder}/${digest.slice(0, 2)}/${digest}`;
  }
}

/** Removes the staged files that no living process is writing, as far as that is allowed. */
async function sweep(folder: string): Promise<void> {
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (!isFile || !IS_STAGED.test(name)) continue;
    const path = `${folder}/${name}`;
    try {
      using file = await openOwn(path, { write: true });
      if (await file.tryLock(true)) await Deno.remove(path);
    } catch (error) {
      if (!isSystemError(error)) throw error; // its writer may have finished
    }
  }
}

/** Flushes the entries of a folder to disk; Windows has no such operation. */
async function syncFolder(path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  using folder = await Deno.open(path);
  await folder.sync();
}

/** Returns whether the operating system or Deno's permissions refused an operation. */
function isSystemError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined; // e.g. "ENOSPC"; Deno does not name all
  return typeof code === "string" || /\(os error \d+\)$/.test(error.message) ||
    error instanceof Deno.errors.NotCapable;
}

/** The kind of `lengthFault()`. */
const LENGTH = "another length";

function lengthFault(digest: string, actual: number, expected: number): string {
  return `content ${digest} has ${actual} bytes instead of ${expected}`;
}

function faultOf(digest: string, cause: unknown): StorageError {
  if (cause instanceof StorageError) return cause;
  const fault = cause instanceof Deno.errors.NotFound ? "is missing" : "cannot be read";
  return new StorageError("files", `content ${digest} ${fault}`, { kind: fault, cause });
}
