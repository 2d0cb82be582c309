/** The line that runs a command as the user to whom storage belongs. */

import { dirname, resolve } from "node:path";
import { shellWord } from "../input/printable.ts";
import type { OwnerError } from "../storage/owner.ts";

/** The settings that say where storage is, without secrets, if they are in the environment. */
const PLACES = ["DATABASE_URL", "CONTENT"] as const;

/**
 * Runs Deno where it finds no file of root: `DENO_DIR` if that user can read it, else a new folder
 * in place of the user's home.
 */
const SCRIPT = 'test -r "$DENO_DIR" || unset DENO_DIR XDG_CACHE_HOME; ' +
  'HOME=$(mktemp -d) exec "$@"';

/** Returns the line for a shell of root, in any folder. */
export async function lineAsOwner(
  { owner: { uid, gid } }: OwnerError,
  args: readonly string[],
): Promise<string> {
  // Linux has setpriv everywhere, and sudo only where it was installed.
  const user = Deno.build.os === "linux"
    ? ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"]
    : ["sudo", "-u", `#${uid}`, "--preserve-env"];
  const places = PLACES.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined || /^postgres/i.test(value) ? [] : [`${name}=${value}`];
  });
  const project = resolve(import.meta.dirname ?? "", "../..");
  const words = [
    ...[...user, ...places.length > 0 ? ["env", ...places] : [], "sh", "-c", SCRIPT, "sh"],
    ...[...await denoForAll(), "task", "--cwd", project, "media", ...args],
  ];
  return words.map(shellWord).join(" ");
}

/** Returns the command that runs this release of Deno, even if it lies in the home of root. */
async function denoForAll(): Promise<string[]> {
  const path = Deno.execPath();
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const isForAll = ((await Deno.stat(folder)).mode ?? 0o001) & 0o001;
    if (!isForAll) return ["npx", "--yes", `deno@${Deno.version.deno}`];
  }
  return [path];
}
