/** `media usage` */

import type { Command } from "commander";
import { resolve } from "node:path";
import { type DatabasePlace, requireDatabaseUrl, sqliteAt } from "../database/place.ts";
import { storagePathsOf } from "../publishing/storage_paths.ts";
import type { Config } from "../server/config.ts";
import { pathOf, type Route, withToken } from "../server/route.ts";
import { exitStatusOf, onStopSignal } from "../server/stop_signal.ts";
import type { Catalogue } from "../storage/catalogue/catalogue.ts";
import type { Kind } from "../storage/item.ts";
import { newToken } from "../storage/token.ts";
import { type OpenLedger, openLedgerToRead } from "../usage/record/open_ledger.ts";
import { type RecordOptions, usageCommand, type UsageSource } from "../usage/usage_command.ts";
import {
  type Context,
  fromUser,
  openLedgerOf,
  openOutput,
  READING,
  withStorage,
} from "./context.ts";
import { print, printError } from "./print.ts";

export const PROGRAM = {
  howToProbe: "set PUBLIC_URL, and the gate",
  howNotToProbe: "set PUBLIC_URL= for this command",
  retainSetting: "USAGE_DAYS",
  howItStops: "stops with SIGTERM",
  howToAvoidStops: "keep a server running",
};

export function mediaUsageCommand(context: Context): Command {
  return usageCommand({
    print,
    printError: (text) => printError(`media: ${text}`),
    async withSource(
      options: RecordOptions & { readonly html?: string; readonly client?: string },
      action,
    ) {
      const config = context.settings();
      await withStorage(
        config,
        READING,
        ({ catalogue }) =>
          withRecords(
            config,
            options,
            (records, places) => action(sourceOf(records, places, { catalogue, config, context })),
          ),
      );
      if (options.html && options.client && config.publicUrl === undefined) {
        printError(
          "media: set PUBLIC_URL, so that the page names this server and links to its notice",
        );
      }
    },
  });
}

/** Returns the path of items to which clients of a deleted route should move. */
function successorOfDeleted(routes: readonly Route[]): string | undefined {
  const items = routes.filter(({ serves }) => typeof serves !== "string");
  const found = items.find(({ successor }) => successor === undefined);
  return found && pathOf(found);
}

/** Opens the server's record, and those beside the catalogues that `--also` names. */
async function withRecords(
  { database }: Config,
  { also = [] }: RecordOptions,
  action: (records: UsageSource["records"], places: readonly DatabasePlace[]) => Promise<void>,
): Promise<void> {
  const opened: OpenLedger[] = [];
  const open = async (place: DatabasePlace, setting?: "--also") => {
    const record = await openLedgerOf(place, openLedgerToRead, setting);
    opened.push(record);
    return { ledger: record.ledger, name: nameOf(place) };
  };
  try {
    const own = await open(database);
    const places = also.map((url) => {
      const place = requireDatabaseUrl(url, "--also");
      return place.kind === "sqlite" ? sqliteAt(fromUser(place.path)) : place;
    });
    const others = [];
    for (const place of places) others.push(await open(place, "--also"));
    await action([own, ...others], [database, ...places]);
  } finally {
    for (const { close } of opened) await close();
  }
}

function nameOf(place: DatabasePlace): string {
  return place.kind === "sqlite" ? sqliteAt(resolve(place.path)).name : place.name;
}

function sourceOf(
  records: UsageSource["records"],
  places: readonly DatabasePlace[],
  { catalogue, config, context: { routes } }: {
    readonly catalogue: Catalogue;
    readonly config: Config;
    readonly context: Context;
  },
): UsageSource {
  const { publicUrl: url, contact } = config;
  const routeOf = (path: string) => routes.find((route) => pathOf(route) === path);
  const probe = url === undefined ? undefined : {
    url,
    /** Returns the URL of the route's shortest item. */
    async urlOf(path: string, phase: string) {
      const route = routeOf(path);
      if (route === undefined) return undefined;
      const token = phase === "removed" // when any token counts
        ? newToken()
        : await catalogue.shortestPublished(route.serves as readonly Kind[]);
      return token && url + withToken(path, token);
    },
  };
  return {
    records,
    program: PROGRAM,
    probe,
    publicUrl: url,
    contact,
    successorOf: (path) => {
      const route = routeOf(path);
      return route === undefined ? successorOfDeleted(routes) : route.successor;
    },
    async openFile(name) {
      onStopSignal((signal) => Deno.exit(exitStatusOf(signal))); // which removes the draft
      const files = [...storagePathsOf(config), ...places.flatMap(({ files }) => files)];
      return await openOutput(name, files);
    },
  };
}
