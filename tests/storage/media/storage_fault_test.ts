import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { inFolder, media } from "../../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../../support/paths.ts";
import { needing } from "../../support/permissions.ts";
import { ServerProcess, storageIn } from "../../support/server.ts";

const test = needing("processes");

test("a server and media name the variable and path of unusable storage", () =>
  inFolder(async (folder) => {
    const path = `${folder}/catalogue`;
    const DATABASE_URL = `sqlite:${path}`;
    await Deno.writeTextFile(path, "no database, and not a short text either");
    const { message } = await assertRejects(
      () => ServerProcess.start({ DATABASE_URL }, folder),
      Error,
    );
    const fault = `the catalogue "${path}" (DATABASE_URL) cannot be opened`;
    assert(message.endsWith(`cannot start: sqlite: ${fault} (file is not a database)\n`), message);

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
