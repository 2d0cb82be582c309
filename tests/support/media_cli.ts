/** Running the command line as a process. */

import { fromRoot } from "./paths.ts";
import { MAIN } from "./routes.ts";
import { storageIn, taskFlags } from "./server.ts";
import { within } from "./within.ts";

/** The result of a command. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns a command to spawn, on storage in a folder. */
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

/** Runs a command to completion. */
export function media(
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<CommandResult> {
  return result(mediaCommand(folder, args, environment));
}

/**
 * Returns the command line of `deno task media` for any working directory, with options of `deno
 * task`.
 */
export function taskArguments(args: string[], options: string[] = []): string[] {
  return ["task", "--config", fromRoot("deno.json"), ...options, "media", ...args];
}

/** Runs a command as operators do: by its task, with the task's permissions. */
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
      stdout: "piped",
      stderr: "piped",
    }),
  );
}

/** Returns an operator's environment, without the INIT_CWD that `deno task test` has set. */
export function operatorEnvironment(folder: string): Pick<Deno.CommandOptions, "env" | "clearEnv"> {
  const { INIT_CWD: _, ...environment } = Deno.env.toObject();
  return { clearEnv: true, env: { ...environment, ...storageIn(folder), NO_COLOR: "1" } };
}

/** Runs a test in a temporary folder. */
export async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Creates an empty catalogue. */
export async function makeCatalogue(
  folder: string,
  environment?: Record<string, string>,
): Promise<void> {
  await media(folder, ["import", "/dev/null"], environment);
}

/** Removes the line that tells of a new catalogue, which every first command prints. */
export function withoutCreation(stderr: string): string {
  return stderr.replace(/^media: created the catalogue .*\n/m, "");
}

async function result(command: Deno.Command): Promise<CommandResult> {
  const process = command.spawn();
  const output = within("the end of a command", process.output(), { timeout: 300_000, process });
  const { code, stdout, stderr } = await output;
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: decode(stdout), stderr: withoutCreation(decode(stderr)) };
}
