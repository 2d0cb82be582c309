import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { readAtOnce, streamPart } from "../../../../lib/storage/content/folder/file_part.ts";
import { StorageError } from "../../../../lib/storage/errors.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { needing } from "../../../support/permissions.ts";

const test = needing("files");

const LENGTH = 1_000_000;

/** Opens a file of a million bytes at one of them. */
async function openAt(folder: string, position: number): Promise<Deno.FsFile> {
  const path = `${folder}/content`;
  const content = Uint8Array.from({ length: LENGTH }, (_, index) => index % 251);
  await Deno.writeFile(path, content);
  const file = await Deno.open(path);
  await file.seek(position, Deno.SeekMode.Start);
  return file;
}

test("a part is read from where the file stands, at once or as a stream", () =>
  inFolder(async (folder) => {
    const expected = Uint8Array.from({ length: 600_000 }, (_, index) => (index + 100) % 251);
    assertEquals(readAtOnce(await openAt(folder, 100), 600_000), expected);
    const stream = streamPart(await openAt(folder, 100), 600_000);
    assertEquals(await new Response(stream).bytes(), expected);
  }));

test("a part that the file ends before is refused, and leaves nothing open", () =>
  inFolder(async (folder) => {
    const file = await openAt(folder, 999_000);
    assertThrows(() => readAtOnce(file, 2_000), StorageError, "ended early");
    file.close();
    const stream = streamPart(await openAt(folder, 999_000), 2_000);
    await assertRejects(() => new Response(stream).bytes(), StorageError, "ended early");
  }));

test("a stream reads a chunk at a time, and ends when it is cancelled while it reads", () =>
  inFolder(async (folder) => {
    const reader = streamPart(await openAt(folder, 0), LENGTH).getReader();
    assertEquals((await reader.read()).value?.length, 64 * 1024);
    const reading = reader.read().catch(() => {});
    await reader.cancel();
    await reading;
  }));
