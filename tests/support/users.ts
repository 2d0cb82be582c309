/** Commands of other users, run by `su` from a copy of Deno and of this project. */

import { dirname } from "node:path";
import { copyPackages, copyProject } from "./copy.ts";
import { operatorEnvironment, result, taskArguments } from "./media_cli.ts";
import { type Condition, type Need, program } from "./permissions.ts";
import { type CommandResult, runProgram } from "./run.ts";

const ROOT: Condition = { what: "root", isMet: () => Deno.uid() === 0 };

/** The users that every Linux has, besides root. */
export type User = "root" | "nobody" | "daemon";

export const USERS: readonly Need[] = ["processes", ROOT, program("su")];

/** A copy of Deno and of this project that every user may run. Disposing of it removes it. */
export class Installation implements AsyncDisposable {
  private constructor(private readonly folder: string) {}

  static async make(): Promise<Installation> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-installation-" });
    await Deno.copyFile(Deno.execPath(), `${folder}/deno`);
    await copyPackages(`${folder}/cache/npm`);
    copyProject(`${folder}/project`);
    await Deno.chmod(folder, 0o755);
    return new Installation(folder);
  }

  /**
   * Runs a command by `deno task media`, with its permissions.
   *
   * @param place The folder with the storage.
   */
  media(user: User, place: string, args: string[]): Promise<CommandResult> {
    const words = taskArguments(args, ["--quiet"], `${this.folder}/project/deno.json`);
    return this.#runProgram(user, place, [`${this.folder}/deno`, ...words]);
  }

  /** Runs a line that root was told to run, as root pastes it. What it makes stays beside the place. */
  paste(place: string, line: string): Promise<CommandResult> {
    return this.#runProgram("root", place, ["env", `TMPDIR=${dirname(place)}`, "sh", "-c", line]);
  }

  /** Runs a shell script. */
  async script(user: User, place: string, script: string): Promise<void> {
    const { code, stderr } = await this.#runProgram(user, place, ["bash", "-e", "-c", script]);
    if (code !== 0) throw new Error(stderr);
  }

  #runProgram(user: User, place: string, words: string[]): Promise<CommandResult> {
    const { env } = operatorEnvironment(place);
    const args = ["-s", "/bin/sh", "-c", 'exec "$@"', "--", user, "sh", ...words];
    const options = { cwd: place, clearEnv: true };
    return result(
      runProgram("su", args, { ...options, env: { ...env, DENO_DIR: `${this.folder}/cache` } }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
