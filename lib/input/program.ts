/** How a program runs its commands. */

import { type Command, CommanderError } from "commander";
import { EXIT_STATUS, ExitError, isGate } from "../errors/exit_status.ts";
import { isPipeClosed, print, printError } from "./print.ts";

/**
 * Runs the command that the arguments name, or prints help or the version.
 *
 * @param program The program, to which the commands are added.
 * @returns The exit status: 0 done, 2 wrong usage, or help in place of a gate's verdict; or that of an
 *   `ExitError`.
 * @throws Any other error of the command, and a `RefusedError` if help cannot be written.
 */
export async function runProgram(
  program: Command,
  commands: readonly Command[],
  args: readonly string[],
): Promise<number> {
  let help = "";
  program
    .enablePositionalOptions() // or `--version` after a command would end a gate with 0, as if clear
    .showHelpAfterError("(run with --help for usage)")
    .configureOutput({
      writeOut: (text) => help += text,
      writeErr: (text) => printError(text.trimEnd()),
      // Otherwise it reads variables of the environment, which Deno may not allow.
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .exitOverride();
  for (const command of commands) program.addCommand(command.copyInheritedSettings(program));
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof ExitError) return error.status;
    if (!(error instanceof CommanderError)) throw error;
    if (help === "") return EXIT_STATUS.wrongUsage; // and it has printed what is wrong
    await print(help.trimEnd()).catch((error) => {
      if (!isPipeClosed(error)) throw error;
    });
    if (isGate(args)) return EXIT_STATUS.wrongUsage; // 0 would mean that it is clear
  }
  return EXIT_STATUS.done;
}
