/**
 * The command line as a process.
 */

import { fromRoot } from "./paths.ts";
import { storageIn, taskFlags } from "./server.ts";

const MAIN = fromRoot("main.ts");

/** What a command did. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command line to spawn, on storage in a folder. */
export function mediaCommand(
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
  stdin: "null" | "piped" = "null",
): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", ...taskFlags(MAIN), MAIN, "media", ...args],
    env: { ...storageIn(folder), NO_COLOR: "1", ...environment },
    stdin,
    stdout: "piped",
    stderr: "piped",
  });
}

/** Runs a command to its end. */
export function media(
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<CommandResult> {
  return result(mediaCommand(folder, args, environment));
}

/** What to type for `deno task media`, wherever the user stands, with options of `deno task`. */
export function taskArguments(args: string[], options: string[] = []): string[] {
  return ["task", "--config", fromRoot("deno.json"), ...options, "media", ...args];
}

/** Runs a command as the operator does: by its task, with the permissions it has there. */
export function mediaTask(
  folder: string,
  standing: string,
  args: string[],
  options: string[] = [],
): Promise<CommandResult> {
  return result(
    new Deno.Command(Deno.execPath(), {
      args: taskArguments(args, options),
      cwd: standing,
      ...operatorEnvironment(folder),
      stdin: "null",
    }),
  );
}

/** The environment that an operator has: `deno task test` has put INIT_CWD into that of the tests. */
export function operatorEnvironment(folder: string): Pick<Deno.CommandOptions, "env" | "clearEnv"> {
  const { INIT_CWD: _, ...environment } = Deno.env.toObject();
  return { clearEnv: true, env: { ...environment, ...storageIn(folder), NO_COLOR: "1" } };
}

/** A folder for one test, removed when it is over. */
export async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function result(command: Deno.Command): Promise<CommandResult> {
  const { code, stdout, stderr } = await command.output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: decode(stdout), stderr: decode(stderr) };
}
