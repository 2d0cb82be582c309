/** `media list` */

import { Command } from "commander";
import { printable } from "../input/printable.ts";
import { toRecord } from "../publishing/exported_record.ts";
import { type Context, EXISTING, withStorage } from "./context.ts";
import { print } from "./print.ts";

export function listCommand(context: Context): Command {
  return new Command("list")
    .description("List everything ever published, ordered by token; for programs, see export.")
    .action(async () => {
      await withStorage(context.settings(), EXISTING, async (storage) => {
        for await (const [token, entry] of storage.catalogue.list()) {
          await print(toLine(toRecord(token, entry)));
        }
      });
    });
}

function toLine(record: ReturnType<typeof toRecord>): string {
  const { token, kind, state } = record;
  const columns = state === "unpublished" ? [record.unpublishedAt] : [
    record.publishedAt,
    String(record.length ?? "-").padStart(12),
    record.type ?? "-",
    printable(record.location ?? record.name ?? ""),
  ];
  return [token, kind, state.padEnd("unpublished".length), ...columns].join("  ").trimEnd();
}
