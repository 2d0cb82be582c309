/** `media show TOKEN` */

import { Command } from "commander";
import type { DatabasePlace } from "../database/place.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { NotCreatedError } from "../errors/storage_error.ts";
import { printable } from "../input/printable.ts";
import { FaultLog } from "../log/log.ts";
import { membersOf } from "../publishing/entry_members.ts";
import { itemPaths } from "../server/route.ts";
import type { Token } from "../storage/token.ts";
import { policiesUnder, type RecordedHold } from "../usage/record/holds.ts";
import { openLedgerToRead } from "../usage/record/open_ledger.ts";
import { type Context, openLedgerOf, READING, tokenArgument, withStorage } from "./context.ts";
import { print, printError } from "./print.ts";

export function showCommand(context: Context): Command {
  return new Command("show")
    .description("Show an item's entry in the catalogue, and the response to a HEAD for it.")
    .argument("<token>", "the token of the item", tokenArgument)
    .option("--json", "print it as one JSON object")
    .action(async (token: Token, { json }: { json?: true }) => {
      const config = context.settings();
      await withStorage(config, READING, async (storage) => {
        const result = await storage.catalogue.find(token);
        if (result.state === "unknown") {
          throw new RefusedError(`Token "${token}" was never published`);
        }
        const members = membersOf(token, result);
        const policies = policiesUnder(config.policies, await holdsOf(config.database));
        // The server's handler makes the responses, so they are those that clients get.
        const faults: string[] = [];
        const handle = context.createHandler({
          routes: context.routes,
          storage,
          config,
          policies: () => policies,
          clock: Date.now,
          faults: new FaultLog(({ cause }) =>
            faults.push(String(cause).split("\n", 1)[0] as string)
          ),
        });
        const heads = [];
        for (const path of itemPaths(context.routes, members)) {
          const request = new Request(`http://localhost${path}`, { method: "HEAD" });
          const { response: { status, headers } } = await handle(request, Date.now());
          heads.push({ path, status, fields: Object.fromEntries(headers) });
        }
        if (json) return await print(JSON.stringify({ ...members, heads, faults }));
        for (const [name, value] of Object.entries(members)) {
          await print(`${name.padEnd(14)}${printable(String(value))}`);
        }
        for (const { path, status, fields } of heads) {
          await print(`\nHEAD ${path}\n${status}`);
          for (const [name, value] of Object.entries(fields)) await print(`${name}: ${value}`);
        }
        for (const fault of new Set(faults)) await print(`\n${fault}`);
        if (config.isDeprecationUnset) {
          printError(
            "media: DEPRECATED_AT is not set here, so Deprecation may differ on the server",
          );
        }
      });
    });
}

/** Returns the holds in the ledger of a catalogue; none before a server has created it. */
async function holdsOf(catalogue: DatabasePlace): Promise<readonly RecordedHold[]> {
  const opened = await openLedgerOf(catalogue, openLedgerToRead).catch((error) => {
    if (!(error.cause instanceof NotCreatedError)) throw error;
  });
  if (opened === undefined) return [];
  const { holds } = await opened.ledger.holds().finally(opened.close);
  return holds;
}
