/** `lifecycle check` */

import { Command } from "commander";
import { ExitError } from "../errors/exit_status.ts";
import type { Field } from "../http/outcome.ts";
import { argument, headerOption, httpUrlArgument } from "../input/arguments.ts";
import { printable } from "../input/printable.ts";
import { print } from "../input/print.ts";
import { check } from "../lifecycle/checking/check.ts";

interface CommandOptions {
  readonly json?: true;
  readonly header?: Field[];
  readonly expect?: "none";
}

export function checkCommand(): Command {
  return new Command("check")
    .description(
      "Send a HEAD and a GET to each URL, and print what they announce, and every fault." +
        " Exit 0 if there is none, 1 if there are some, 2 if a URL cannot be reached.",
    )
    .argument(
      "<url...>",
      'starts with "https://" or "http://"',
      (url: string, others: string[] = []) => [...others, httpUrlArgument(url)],
    )
    .option("--json", "print what was found as JSON")
    .addOption(headerOption("request"))
    .option(
      "--expect <none>",
      "for the CI of a client: exit 1 if a URL announces a retirement, 0 if none does, 2 if that is" +
        " open of one: it cannot be reached, redirects elsewhere, or has a status like 404",
      argument('"none"', (text) => text === "none" ? text : undefined),
    )
    .action(async (urls: string[], { json, header, expect }: CommandOptions) => {
      const expectsNone = expect === "none";
      const { data, lines, exitStatus } = await check(urls, { fields: header, expectsNone });
      await print(json ? JSON.stringify(data, undefined, 2) : lines.map(printable).join("\n"));
      throw new ExitError(exitStatus);
    });
}
