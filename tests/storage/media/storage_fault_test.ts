import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { inFolder, media } from "../../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../../support/paths.ts";
import { LINUX, needing, pathOf, program } from "../../support/permissions.ts";
import { ServerProcess, storageIn } from "../../support/server.ts";

const test = needing("processes");

/** A disk of 256 kB. Mounting it requires root. */
function mount(folder: string): boolean {
  const args = ["-t", "tmpfs", "-o", "size=256k", "tmpfs", folder];
  return new Deno.Command("mount", { args }).outputSync().success;
}

function unmount(folder: string): void {
  assert(new Deno.Command("umount", { args: [folder] }).outputSync().success);
}

function canMount(): boolean {
  if (pathOf("mount") === undefined) return false;
  const folder = Deno.makeTempDirSync({ prefix: "media-head-" });
  const is = mount(folder);
  if (is) unmount(folder);
  Deno.removeSync(folder);
  return is;
}

const MOUNT = [program("mount"), program("umount"), { what: "rights to mount", isMet: canMount }];

needing("processes", LINUX, ...MOUNT)(
  "media publish reports a full disk in one line, and leaves nothing staged",
  () =>
    inFolder(async (folder) => {
      const wav = new Uint8Array(1_000_000);
      wav.set(new TextEncoder().encode("RIFF\x24\x00\x00\x00WAVEfmt "));
      await Deno.writeFile(`${folder}/a.wav`, wav);
      const files = `${folder}/files`;
      await Deno.mkdir(files);
      assert(mount(files));
      try {
        const { code, stderr } = await media(folder, ["publish", `${folder}/a.wav`]);
        assertEquals(code, 1);
        assertMatch(
          stderr,
          /^media: files: cannot write to "[^\n"]*\/files" \(CONTENT\) \(No space left [^\n]*\n$/,
        );
        assertEquals(await Array.fromAsync(Deno.readDir(`${files}/staged`)), []);
        assertEquals((await media(folder, ["publish", SAMPLE_MP3])).code, 0); // it fits
      } finally {
        unmount(files);
      }
    }),
);

test("media names the variable and path of unusable storage", () =>
  inFolder(async (folder) => {
    const path = `${folder}/catalogue`;
    const DATABASE_URL = `sqlite:${path}`;
    await Deno.writeTextFile(path, "no database, and not a short text either");
    const message = `sqlite: the catalogue "${path}" (DATABASE_URL) cannot be opened` +
      " (file is not a database)\n";
    const listed = await media(folder, ["list"], { DATABASE_URL });
    assertEquals([listed.code, listed.stderr], [1, `media: ${message}`]);
    const started = await assertRejects(() => ServerProcess.start({ DATABASE_URL }, folder), Error);
    assert(started.message.endsWith(`media-head cannot start: ${message}`), started.message);

    const CONTENT = `${path}/files`; // below a file
    const published = await media(folder, ["publish", SAMPLE_MP3], { CONTENT });
    assertEquals(published.code, 1);
    assertMatch(
      published.stderr,
      /^media: files: cannot read "[^\n"]*\/catalogue\/files" \(CONTENT\) \(Not a dir[^\n]*\n$/,
    );

    const { stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-prompt", "--allow-read", "--allow-env", `--allow-write=${folder}`],
        ...[fromRoot("main.ts"), "media", "publish", SAMPLE_MP3],
      ],
      env: { ...storageIn(folder), CONTENT: "/srv/files", NO_COLOR: "1" },
    }).output();
    assertEquals(
      new TextDecoder().decode(stderr),
      'media: files: cannot write to "/srv/files" (CONTENT) (Requires write access to' +
        ' "/srv/files", run again with the --allow-write flag)\n',
    );
  }));
