/** `media list` */

import { Command } from "commander";
import { printable } from "../input/printable.ts";
import { membersOf } from "../publishing/entry_members.ts";
import { type Context, READING, withStorage } from "./context.ts";
import { print } from "./print.ts";

export function listCommand(context: Context): Command {
  return new Command("list")
    .description("List everything ever published, ordered by token; for programs, see export.")
    .action(async () => {
      await withStorage(context.settings(), READING, async (storage) => {
        for await (const [token, entry] of storage.catalogue.list()) {
          await print(toLine(membersOf(token, entry)));
        }
      });
    });
}

function toLine(members: ReturnType<typeof membersOf>): string {
  const { token, kind, state } = members;
  const columns = state === "unpublished" ? [members.unpublishedAt] : [
    members.publishedAt,
    String(members.length ?? "-").padStart(12),
    members.type ?? "-",
    printable(members.location ?? members.name ?? ""),
  ];
  return [token, kind, state.padEnd("unpublished".length), ...columns].join("  ").trimEnd();
}
