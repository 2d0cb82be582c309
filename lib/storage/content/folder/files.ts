/**
 * Content-addressed files: the bytes of published items, each stored once under its digest.
 *
 *     <folder>/ab/abcd…    content, named by its SHA-256
 *     <folder>/staged/     content being published; each file is locked by its writer
 *     <folder>/unsettled/  digests whose content is being added or removed
 *     <folder>/lock        locked while any of the above changes; contains the store's identifier
 *
 * Locks are the operating system's (flock), so a killed process holds none, and the next writer
 * recognises and removes its leftovers. Everything in <folder> gets the owner, group and mode of
 * <folder>, as far as the publisher may set them, because servers must be able to read the content,
 * whoever published it with whatever umask.
 */

import { type Patience, waitFor } from "../../../async/abort.ts";
import type { Body } from "../../../http/outcome.ts";
import type { ByteRange } from "../../../http/byte_range.ts";
import { writeAll } from "../../../input/write_all.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { readAtOnce, streamPart } from "./file_part.ts";
import {
  type Comparison,
  type Content,
  MAX_AT_ONCE_BYTES,
  type PlainStore,
  type Source,
} from "../content_store.ts";
import type { ContentReference } from "../../item.ts";
import { StorageError } from "../../errors.ts";
import type { OnFault } from "../../storage.ts";

export class Files implements PlainStore {
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
    return this.#attempt("read", () => ifPresent(Deno.readTextFile(this.#lock)));
  }

  create(id: string): Promise<void> {
    return this.#attempt("write to", async () => {
      await Deno.mkdir(this.#folder, { recursive: true });
      const createIfNone = { write: true, create: true };
      await this.#withLock(async () => {
        if (await this.id() !== "") return;
        await this.#share(this.#lock);
        await Deno.writeTextFile(this.#lock, id);
      }, createIfNone);
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
        return { state: "different", reason: lengthFault(digest, size, length) };
      } catch (cause) {
        if (!(cause instanceof Deno.errors.NotFound)) throw faultOf(digest, cause);
        return { state: "missing", reason: `content ${digest} is missing` };
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
        if (size !== length) throw new StorageError("files", lengthFault(digest, size, length));
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
      await this.#makeFolder(folder);
      if (!this.#isSwept) await sweep(folder);
      this.#isSwept = true;
      const file = await Deno.open(path, { write: true, createNew: true });
      await file.lock(true);
      await this.#share(path);
      return file;
    });

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

  /** If the process is killed meanwhile, the next change cleans up after it. */
  async change<T>(content: Content, commit: () => Promise<T>, source?: Source): Promise<T> {
    const { digest } = content;
    await using staged = source && await this.#stage(content, source);
    const unsettled = `${this.#folder}/unsettled`;
    const settle = async (digest: string) => {
      if (!await this.#catalogue.usesAfterChanges(digest)) {
        await ifPresent(Deno.remove(this.#path(digest)));
      }
      await Deno.remove(`${unsettled}/${digest}`);
    };
    return await this.#exclusively(async () => {
      await this.#makeFolder(unsettled);
      for await (const left of Deno.readDir(unsettled)) await settle(left.name);
      await Deno.writeFile(`${unsettled}/${digest}`, new Uint8Array());
      try {
        if (staged !== undefined) await this.#place(digest, staged.path);
        return await commit();
      } finally {
        await settle(digest);
      }
    });
  }

  async *list(): AsyncGenerator<string> {
    const isContent = /^[0-9a-f]{64}$/;
    for (let number = 0; number < 256; number++) {
      const shard = number.toString(16).padStart(2, "0");
      const read = () => Array.fromAsync(Deno.readDir(`${this.#folder}/${shard}`));
      for (const { name } of await this.#attempt("read", () => ifPresent(read())) ?? []) {
        if (isContent.test(name) && name.startsWith(shard)) yield name;
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
    action: () => Promise<T>,
    options: Deno.OpenOptions = { read: true },
  ): Promise<T> {
    const name = `the lock of ${this.#location}`;
    using file = await Deno.open(this.#lock, options).catch((cause) => {
      throw new StorageError("files", `${name} cannot be opened`, { cause });
    });
    await waitFor(`${name}, which another process holds`, file.lock(true), this.#patience);
    return await action();
  }

  #openFile(digest: string): { file: Deno.FsFile; size: number } {
    const path = this.#path(digest);
    const { isFile, size } = Deno.statSync(path);
    // Opening a pipe or a device would block the thread.
    if (isFile) return { file: Deno.openSync(path), size };
    throw new StorageError("files", `content ${digest} is not a regular file`);
  }

  /** Moves content to its place, and replaces any file there, because that may be damaged. */
  async #place(digest: string, path: string): Promise<void> {
    const shard = `${this.#folder}/${digest.slice(0, 2)}`;
    await this.#makeFolder(shard);
    await Deno.rename(path, this.#path(digest));
    await syncFolder(shard);
    await syncFolder(this.#folder);
  }

  async #makeFolder(path: string): Promise<void> {
    const isThere = await Deno.stat(path).then(() => true, () => false);
    await Deno.mkdir(path, { recursive: true });
    if (!isThere) await this.#share(path);
  }

  /**
   * Gives a new file or folder the mode and, as far as allowed, the group and owner of the folder
   * with the content.
   */
  async #share(path: string): Promise<void> {
    if (Deno.build.os === "windows") return;
    const { mode, uid, gid } = await Deno.stat(this.#folder);
    const { isFile } = await Deno.stat(path);
    await Deno.chmod(path, (mode ?? 0o755) & (isFile ? 0o666 : 0o7777));
    await Deno.chown(path, null, gid).catch(() => {}); // to a group that the publisher is in
    await Deno.chown(path, uid, null).catch(() => {}); // only root may
  }

  #exclusively<T>(action: () => Promise<T>): Promise<T> {
    return this.#attempt("write to", () => this.#withLock(action));
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

  #path(digest: string): string {
    return `${this.#folder}/${digest.slice(0, 2)}/${digest}`;
  }
}

/** Removes the staged files that no living process is writing. */
async function sweep(folder: string): Promise<void> {
  for await (const { name } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    using file = await ifPresent(Deno.open(path, { write: true })); // its writer may have finished
    if (await file?.tryLock(true)) await ifPresent(Deno.remove(path));
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

/** Returns the result of an operation on a file; `undefined` if there is no such file. */
async function ifPresent<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function lengthFault(digest: string, actual: number, expected: number): string {
  return `content ${digest} has ${actual} bytes instead of ${expected}`;
}

function faultOf(digest: string, cause: unknown): StorageError {
  if (cause instanceof StorageError) return cause;
  const fault = cause instanceof Deno.errors.NotFound ? "is missing" : "cannot be read";
  return new StorageError("files", `content ${digest} ${fault}`, { cause });
}
