/** `media unpublish TOKEN` */

import { Command } from "commander";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { membersOf } from "../publishing/entry_members.ts";
import { unpublish } from "../publishing/unpublish.ts";
import type { Token } from "../storage/token.ts";
import { type Context, requireContentOwner, tokenArgument, withStorage } from "./context.ts";
import { print, printError } from "./print.ts";

export function unpublishCommand(context: Context): Command {
  return new Command("unpublish")
    .description("Unpublish an item permanently: its token answers 410 from then on.")
    .argument("<token>", "the token of the item", tokenArgument)
    .option("--json", "print the entry as JSON")
    .action(async (token: Token, { json }: { json?: true }) => {
      const config = context.settings();
      await requireContentOwner(config);
      await withStorage(config, { mustExist: true }, async (storage) => {
        let isLeft = false;
        const onMessage = (text: string) => printError(`media: ${text}`);
        const onLeft = (text: string) => {
          isLeft = true;
          onMessage(text);
        };
        const options = { onMessage, onLeft };
        const { isNew, deleted } = await unpublish(storage, token, Date.now(), options);
        const result = await storage.catalogue.find(token);
        if (result.state === "unknown") {
          throw new RefusedError(`Token "${token}" was never published`);
        }
        if (!isNew && deleted.length === 0) {
          throw new RefusedError(`Token "${token}" is already unpublished`);
        }
        const seconds = storage.catalogue.versionTtlMs / 1000;
        const text = isNew
          ? `Unpublished ${token}; running servers answer 410 within ${seconds} s`
          : [`Token "${token}" is already unpublished; deleted what was left:`, ...deleted]
            .join("\n  ");
        await print(json ? JSON.stringify(membersOf(token, result)) : text);
        if (isLeft) throw new ExitError(EXIT_STATUS.refused);
      });
    });
}
