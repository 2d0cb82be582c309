/**
 * `media list`
 */

import { Command } from "commander";
import type { Token } from "../storage/token.ts";
import { toRecord } from "../publishing/record.ts";
import { printable } from "../publishing/printable.ts";
import type { CatalogueEntry } from "../storage/storage.ts";
import { type Context, print, withStorage } from "./command.ts";

/** Builds the command. */
export function listCommand(context: Context): Command {
  return new Command("list")
    .description("List everything ever published, ordered by token.")
    .option("--json", "print one JSON object per line")
    .action(async ({ json }: { json?: true }) => {
      await withStorage(context, context.settings(), async (storage) => {
        for await (const [token, entry] of storage.list()) {
          await print(json ? JSON.stringify(toRecord(token, entry)) : toLine(token, entry));
        }
      });
    });
}

function toLine(token: Token, entry: CatalogueEntry): string {
  const { state, kind } = toRecord(token, entry);
  const columns = entry.state === "unpublished" ? [instant(entry.unpublishedAt)] : [
    instant(entry.item.publishedAt),
    String(entry.item.length ?? "-").padStart(12),
    entry.item.type ?? "-",
    printable(("location" in entry.item ? entry.item.location : entry.item.name) ?? ""),
  ];
  return [token, kind, state.padEnd("unpublished".length), ...columns].join("  ").trimEnd();
}

const instant = (at: number) => new Date(at).toISOString();
