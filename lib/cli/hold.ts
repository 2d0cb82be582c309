/** `media hold` */

import type { Command } from "commander";
import { holdCommand } from "../usage/hold_command.ts";
import { openLedgerToChange } from "../usage/record/open_ledger.ts";
import { type Context, openLedgerOf } from "./context.ts";
import { print, printError } from "./print.ts";

export function mediaHoldCommand(context: Context): Command {
  return holdCommand({
    print,
    printError: (text) => printError(`media: ${text}`),
    async withLedger(_, action) {
      const config = context.settings();
      const lifetime = `CACHE_MAX_AGE (${config.cacheMaxAge} seconds, as it is set here)`;
      const { ledger, close } = await openLedgerOf(config.database, openLedgerToChange);
      await action(ledger, lifetime).finally(close);
    },
  });
}
