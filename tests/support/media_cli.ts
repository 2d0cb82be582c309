/**
 * The command line as a process.
 */

import { fromRoot } from "./paths.ts";
import { storageIn } from "./server.ts";

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
): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-all", fromRoot("lib/cli/media.ts"), ...args],
    env: { ...storageIn(folder), NO_COLOR: "1", ...environment },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Runs a command to its end. */
export async function media(
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<CommandResult> {
  const { code, stdout, stderr } = await mediaCommand(folder, args, environment).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: decode(stdout), stderr: decode(stderr) };
}
