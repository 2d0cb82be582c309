/** What several test files need, made once in a run by the file that needs it first. */

/**
 * Returns a folder that is made once in this process, which runs all test files, each in a thread of
 * its own. Nothing in it may be changed.
 *
 * @param name What is in it.
 * @param make Fills the folder. If it throws, the next file that needs the folder tries again.
 */
export async function madeOnce(
  name: string,
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const run = await folderOfRun();
  const path = `${run}/${name}`; // of a file that says where the folder is
  using file = await Deno.open(path, { create: true, write: true });
  await file.lock(true); // until it is closed
  const made = await Deno.readTextFile(path);
  if (made !== "") return made;
  const folder = await Deno.makeTempDir({ dir: run });
  await make(folder);
  await Deno.writeTextFile(path, folder);
  return folder;
}

/** Makes a folder that is removed when this process ends, in whatever way, if not before. */
export async function makeFolder(prefix: string): Promise<string> {
  return await Deno.makeTempDir({ dir: await folderOfRun(), prefix });
}

/** Returns a folder of this process, which is removed when the process ends, in whatever way. */
async function folderOfRun(): Promise<string> {
  // An earlier process may have had the same number, but not with the same start.
  const status = await Deno.readTextFile("/proc/self/stat");
  const [, start] = /^.*\)(?: \S+){19} (\d+)/s.exec(status) ?? [];
  const folder = `${Deno.env.get("TMPDIR") ?? "/tmp"}/media-head-run-${Deno.pid}-${start}`;
  try {
    await Deno.mkdir(folder);
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return folder;
    throw error;
  }
  await Deno.chmod(folder, 0o755); // PostgreSQL has another user than root
  const script = 'tail --pid="$0" -f /dev/null; until rm -rf "$1"; do sleep 1; done';
  await new Deno.Command("setsid", {
    args: ["--fork", "sh", "-c", script, String(Deno.pid), folder],
    cwd: "/",
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn().status;
  return folder;
}
