/** `media usage` */

import type { Command } from "commander";
import { storagePathsOf } from "../publishing/storage_paths.ts";
import type { Config } from "../server/config.ts";
import { pathOf, type Route, withToken } from "../server/route.ts";
import type { Catalogue } from "../storage/catalogue/catalogue.ts";
import type { Kind } from "../storage/item.ts";
import { newToken } from "../storage/token.ts";
import type { Ledger } from "../usage/record/ledger.ts";
import { usageCommand, type UsageSource } from "../usage/usage_command.ts";
import { type Context, EXISTING, withStorage } from "./context.ts";
import { openOutput } from "./output_file.ts";
import { print, printError } from "./print.ts";

export const PROGRAM = {
  command: "deno task media usage",
  howToProbe: "set PUBLIC_URL",
  howNotToProbe: "set PUBLIC_URL= for this command",
  retainSetting: "USAGE_DAYS",
};

export function mediaUsageCommand(context: Context): Command {
  return usageCommand({
    print,
    printError: (text) => printError(`media: ${text}`),
    async withSource(options: { readonly html?: string; readonly client?: string }, action) {
      const config = context.settings();
      await withStorage(
        config,
        EXISTING,
        ({ catalogue }, ledger) => action(sourceOf(ledger, catalogue, config, context)),
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

function sourceOf(
  ledger: Ledger,
  catalogue: Catalogue,
  config: Config,
  { routes }: Context,
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
    ledger,
    program: PROGRAM,
    probe,
    publicUrl: url,
    contact,
    successorOf: (path) => {
      const route = routeOf(path);
      return route === undefined ? successorOfDeleted(routes) : route.successor;
    },
    async openFile(name) {
      const { write, close, discard } = await openOutput(name, storagePathsOf(config));
      return {
        write: (page) => write(new TextEncoder().encode(page)).finally(close),
        discard,
      };
    },
  };
}
