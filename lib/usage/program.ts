/** `lifecycle usage`, for a record that applications keep by `openUsage()`. */

import { Command, CommanderError } from "commander";
import { mkdtemp, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { StorageError } from "../database/errors.ts";
import { argument } from "../input/arguments.ts";
import { messageOf, printableLines } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { ExitError, usageCommand, type UsageRecord } from "./command.ts";
import { NODE_FILES } from "./node_files.ts";
import { openLedger } from "./open_ledger.ts";
import { judgedRoutes } from "./report.ts";

const PROGRAM = {
  command: "lifecycle usage",
  howToProbe: "give --probe URL",
  howNotToProbe: "leave out --probe",
  retainSetting: "retainDays",
};

/** What this command has besides the options of every usage command. */
interface ProgramOptions {
  readonly database: string;
  readonly probe?: string[];
  readonly header?: [name: string, value: string][];
}

/**
 * Runs the command.
 *
 * @param args The words after `lifecycle usage`.
 * @returns The exit status: 0 done or clear, 1 refused or called, 2 wrong usage, 3 unknown.
 */
export async function runUsage(args: readonly string[]): Promise<number> {
  const command = usageCommand<ProgramOptions>({
    program: PROGRAM,
    print,
    printError,
    async withRecord(options, action) {
      const { ledger, close } = await openLedger(options.database, {
        setting: "--database",
        files: NODE_FILES,
        mustExist: true,
      });
      try {
        const routes = judgedRoutes(await ledger.sessions());
        await action({ ledger, probe: probeOf(options, routes), writeFile });
      } finally {
        await close();
      }
    },
  });
  const program = new Command("lifecycle")
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride()
    .addCommand(withOptions(command).exitOverride());
  try {
    await program.parseAsync(["usage", ...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof ExitError) return error.status;
    if (!(error instanceof RefusedError || error instanceof StorageError)) throw error;
    printError(messageOf(error));
    return 1;
  }
}

function withOptions(command: Command): Command {
  return command
    .requiredOption("--database <url>", "the record: sqlite:PATH, or postgres://…")
    .option(
      "--probe <url>",
      "with --gate, the URL of an item under a route, to find caches in front; repeatable",
      (url: string, others: string[] = []) => [...others, probeArgument(url)],
    )
    .option(
      "--header <line>",
      'a field to send with each probe, as "NAME: VALUE"; repeatable',
      (line: string, others: [string, string][] = []) => [...others, headerArgument(line)],
    );
}

const probeArgument = argument(
  'a URL that starts with "https://" or "http://"',
  (text) => /^https?:\/\//i.test(text) && URL.canParse(text) ? text : undefined,
);

const headerArgument = argument('"NAME: VALUE"', (line): [string, string] | undefined => {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*?)\s*$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
});

/** Returns how to probe the routes by the URLs that were given; `undefined` without any. */
function probeOf(
  { probe: urls, header = [] }: ProgramOptions,
  routes: readonly string[],
): UsageRecord["probe"] {
  if (urls === undefined) return undefined;
  const byRoute = new Map(urls.map((url) => [routeOf(url, routes), url]));
  return {
    url: urls.map((url) => new URL(url).origin).join(", "),
    urlOf: (route) => Promise.resolve(byRoute.get(route)),
    fields: new Headers(header),
  };
}

/** Returns the route that a URL is under: the longest, or the only one there is. */
function routeOf(url: string, routes: readonly string[]): string {
  const { pathname } = new URL(url);
  const above = routes.filter((route) => `${pathname}/`.startsWith(`${route}/`));
  const [found] = routes.length === 1 ? routes : above.sort((a, b) => b.length - a.length);
  if (found !== undefined) return found;
  const known = routes.map((route) => `"${route}"`).join(" or ") || "a route that was counted";
  throw new RefusedError(`--probe "${url}": expected an item under ${known}`);
}

async function print(text: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  process.stdout.write(`${printableLines(text)}\n`, (cause) => cause ? reject(cause) : resolve());
  await promise.catch((cause) => {
    throw new RefusedError("The output cannot be written", { cause });
  });
}

function printError(text: string): void {
  console.error(printableLines(`lifecycle: ${text}`));
}

/** Writes a file as a whole: beside its place, and then moves it there. */
async function writeFile(name: string, page: string): Promise<void> {
  try {
    const folder = await mkdtemp(join(dirname(name), ".unfinished-usage-"));
    try {
      const draft = join(folder, "page.html");
      const file = await open(draft, "wx");
      await file.writeFile(page).then(() => file.sync()).finally(() => file.close());
      await rename(draft, name);
    } finally {
      await rm(folder, { recursive: true });
    }
  } catch (cause) {
    throw new RefusedError(`"${name}" cannot be written`, { cause });
  }
}
