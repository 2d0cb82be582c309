/** `media export` */

import { Command } from "commander";
import { membersOf } from "../publishing/entry_members.ts";
import { type Context, READING, withStorage } from "./context.ts";
import { print } from "./print.ts";

/** The minimum number of characters to print at a time. */
const CHUNK_LENGTH = 64 * 1024;

export function exportCommand(context: Context): Command {
  return new Command("export")
    .description("Print everything ever published, in the format that `media import` reads.")
    .option("--json", "print one JSON object per line (the default)")
    .action(async () => {
      await withStorage(context.settings(), READING, async (storage) => {
        let lines: string[] = [];
        let length = 0;
        for await (const [token, entry] of storage.catalogue.list()) {
          const line = JSON.stringify(membersOf(token, entry));
          lines.push(line);
          length += line.length;
          if (length < CHUNK_LENGTH) continue;
          await print(lines.join("\n"));
          lines = [];
          length = 0;
        }
        if (lines.length > 0) await print(lines.join("\n"));
      });
    });
}
