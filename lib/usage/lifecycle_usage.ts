/** `lifecycle usage`, for a record that applications keep with `openUsage()`. */

import type { Command } from "commander";
import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { RefusedError, WrongUsageError } from "../errors/refused_error.ts";
import type { Field } from "../http/outcome.ts";
import { headerOption, httpUrlArgument } from "../input/arguments.ts";
import { exitOnSignals } from "../input/at_exit.ts";
import { type Draft, openDraft } from "../input/draft.ts";
import { quoted, withoutPassword } from "../input/printable.ts";
import { print, printError } from "../input/print.ts";
import { type DatabaseOption, databaseOption, withRecords } from "./lifecycle_record.ts";
import { usageCommand, type UsageSource } from "./usage_command.ts";
import { judgedRoutes, latestSession } from "./verdict/announcements.ts";
import { type ReadSession, readSessions } from "./verdict/evidence.ts";

/** The options that this command adds to those of every usage command. */
interface ProgramOptions extends DatabaseOption {
  readonly probe?: string[];
  readonly header?: Field[];
}

export function lifecycleUsageCommand(): Command {
  const command = usageCommand<ProgramOptions>({
    print,
    printError: (text) => printError(`lifecycle: ${text}`),
    withSource: (options, action) =>
      withRecords(options, async (records, places) => {
        const { sessions } = await readSessions(records[0]);
        await action({
          records,
          ...ownerFacts(sessions),
          program: PROGRAM,
          probe: probeThrough(options, judgedRoutes(sessions)),
          openFile: (name) => openPage(name, places.flatMap(({ files }) => files)),
        });
      }),
  });
  return withOptions(command);
}

const PROGRAM: UsageSource["program"] = {
  howToProbe: "give --probe URL, and the gate",
  howNotToProbe: "omit --probe",
  retainSetting: "retainDays",
  howItStops: "calls usage.close() when it stops",
  howToAvoidStops: "keep a process running, or set onDemand: true if none has to",
};

function withOptions(command: Command): Command {
  return command
    .hook("preAction", (command) => {
      const { gate, probe, header } = command.opts();
      if (gate === undefined && probe !== undefined) {
        command.error("error: option '--probe <url>' needs '--gate'");
      }
      if (probe === undefined && header !== undefined) {
        command.error("error: option '--header <line>' needs '--probe'");
      }
    })
    .option(
      "--probe <url>",
      "with --gate, the URL of an item under a route, to find caches in front; repeatable",
      (url: string, others: string[] = []) => [...others, httpUrlArgument(url)],
    )
    .addOption(headerOption("probe"))
    .addOption(databaseOption());
}

/** Returns what the latest session says of the server and of a contact. */
function ownerFacts(sessions: readonly ReadSession[]): Pick<UsageSource, "publicUrl" | "contact"> {
  const { publicUrl, contact } = latestSession(sessions) ?? {};
  return { publicUrl, contact };
}

/** Returns how to probe the routes through the given URLs; `undefined` if there are none. */
function probeThrough(
  { probe: urls, header = [] }: Omit<ProgramOptions, "database">,
  routes: readonly string[],
): UsageSource["probe"] {
  if (urls === undefined || routes.length === 0) return undefined;
  const byRoute = new Map(urls.map((url) => [routeOf(url, routes), url]));
  return {
    url: [...new Set(urls.map((url) => new URL(url).origin))].join(" and "),
    urlOf: (route) => Promise.resolve(byRoute.get(route)),
    fields: new Headers(header),
  };
}

/** Returns the longest route that a URL is under, or the only route there is. */
function routeOf(url: string, routes: readonly string[]): string {
  const { pathname } = new URL(url);
  const above = routes.filter((route) => isUnder(pathname, route));
  const [found] = routes.length === 1 ? routes : above.sort((a, b) => b.length - a.length);
  if (found !== undefined) return found;
  const known = routes.map((route) => `"${route}"`).join(" or ");
  throw new WrongUsageError(
    `--probe ${quoted(withoutPassword(url))}: expected an item under ${known}`,
  );
}

/** Returns whether a path is under a route. A segment like `:id` in the route matches any. */
function isUnder(pathname: string, route: string): boolean {
  const segments = pathname.split("/");
  return route.split("/").every((segment, at) =>
    segment.startsWith(":") ? segments[at] : segment === segments[at]
  );
}

/** Opens a file for a page. Refuses those of the records. */
async function openPage(name: string, files: readonly string[]): Promise<Draft> {
  const places = await Promise.all(
    [name, ...files].map((file) => realpath(file).catch(() => resolve(file))),
  );
  const [place = "", ...recordFiles] = places;
  if (recordFiles.includes(place)) {
    throw new RefusedError(`${quoted(name)} is a file of a record`);
  }
  const undo = exitOnSignals(); // which removes the draft
  const { write, close, discard } = await openDraft(name).catch((error) => {
    undo();
    throw error;
  });
  return { write, close: () => close().finally(undo), discard: () => discard().finally(undo) };
}
