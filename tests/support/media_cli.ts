/** Running the command line as a process. */

import { stub } from "@std/testing/mock";
import { runMedia } from "../../lib/cli/media.ts";
import { createHandler } from "../../main.ts";
import { captureOutput } from "./output.ts";
import { fromRoot } from "./paths.ts";
import { type Need, needing } from "./permissions.ts";
import { MAIN, ROUTES } from "./routes.ts";
import { type CommandResult, resultOf, runProgram } from "./run.ts";
import { storageIn, taskFlags } from "./server.ts";

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
  return result(resultOf(mediaCommand(folder, args, environment).spawn()));
}

/**
 * Runs a command in this process, because another one takes half a second to start: for tests of
 * what a command does and prints. One at a time, since it replaces what belongs to the process. An
 * import that is refused leaves its input open, so it needs a process.
 */
export async function mediaHere(
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<CommandResult> {
  const variables: Record<string, string> = { ...storageIn(folder), ...environment };
  let [stdout, stderr] = ["", ""];
  using _env = stub(Deno.env, "get", (name) => variables[name] ?? ""); // and nothing of .env
  using _stdout = captureOutput((text) => stdout += text);
  using _stderr = stub(console, "error", (text) => stderr += `${text}\n`);
  using _signals = stub(Deno, "addSignalListener");
  const code = await runMedia(args, { routes: ROUTES, createHandler });
  return { code, stdout, stderr: withoutCreation(stderr) };
}

/**
 * Returns the command line of `deno task media` for any working directory, with options of `deno
 * task`.
 */
export function taskArguments(
  args: string[],
  options: string[] = [],
  config = fromRoot("deno.json"),
): string[] {
  return ["task", "--config", config, ...options, "media", ...args];
}

/** Runs a command as operators do: by its task, with the task's permissions. */
export function mediaTask(
  folder: string,
  standing: string,
  args: string[],
  options: string[] = [],
): Promise<CommandResult> {
  const words = taskArguments(args, options);
  return result(
    runProgram(Deno.execPath(), words, { cwd: standing, ...operatorEnvironment(folder) }),
  );
}

/** Returns a command to spawn on a terminal, by its task. */
export function onTerminal(folder: string, args: string[]): Deno.Command {
  const command = [Deno.execPath(), ...taskArguments(args, ["--quiet"])].join(" ");
  return new Deno.Command("script", {
    args: ["--quiet", "--return", "--flush", "--command", command, "/dev/null"],
    ...operatorEnvironment(folder),
    stdin: "null",
    stdout: "piped",
  });
}

/** Runs a command from a script of the shell, for which it is `"$0" "$@"`. */
export function mediaInShell(
  folder: string,
  script: string,
  args: string[],
): Promise<CommandResult> {
  const main = ["run", "--no-prompt", "--allow-all", MAIN, "media", ...args];
  const words = ["-c", script, Deno.execPath(), ...main];
  return result(runProgram("sh", words, operatorEnvironment(folder)));
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

/** Returns a function that registers tests with requirements, each of which gets a temporary folder. */
export function testsInFolder(
  ...needs: Need[]
): (name: string, body: (folder: string) => Promise<void>) => void {
  return (name, body) => needing(...needs)(name, () => inFolder(body));
}

/** Creates an empty catalogue. */
export async function makeCatalogue(
  folder: string,
  environment?: Record<string, string>,
): Promise<void> {
  await mediaHere(folder, ["import", "/dev/null"], environment);
}

/** Removes the line that tells of a new catalogue, which every first command prints. */
export function withoutCreation(stderr: string): string {
  return stderr.replace(/^media: created the catalogue .*\n/m, "");
}

/** Returns how a command ends, without the line that tells of a new catalogue. */
export async function result(running: Promise<CommandResult>): Promise<CommandResult> {
  const { stderr, ...others } = await running;
  return { ...others, stderr: withoutCreation(stderr) };
}
