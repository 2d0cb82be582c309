/** `media verify` */

import { Command } from "commander";
import { SerialQueue } from "../async/serial_queue.ts";
import { EXIT_STATUS, ExitError } from "../errors/exit_status.ts";
import { membersOf } from "../publishing/entry_members.ts";
import { type Verification, verify } from "../publishing/verify.ts";
import type { Comparison } from "../storage/content/content_store.ts";
import { type Context, READING, withStorage } from "./context.ts";
import { interruptionSignal } from "./interruption.ts";
import { print, reportWait } from "./print.ts";
import { showProgress } from "./progress.ts";

/** The marks of `rclone check --combined` for each state, with storage as the source. */
const MARKS = { same: "=", missing: "-", unused: "+", different: "*", failed: "!" } as const;

interface Options {
  readonly content?: true;
  readonly urls: boolean;
  readonly verbose?: true;
  readonly json?: true;
}

type Counts = Record<Comparison["state"] | "unused", number>;

export function verifyCommand(context: Context): Command {
  return new Command("verify")
    .description(
      "Compare published items with what storage and the public URLs have now. Print a line for" +
        " each difference: - missing, * different, ! cannot be checked, + content that no item" +
        " uses; then a summary. Exit 1 if there is any difference.",
    )
    .option("--content", "read all content and compare digests")
    .option("--no-urls", "leave public URLs out")
    .option("--verbose", "also print a line for each unchanged item (=)")
    .option("--json", "print one JSON object per line, the counts last")
    .action(async (options: Options) => {
      const config = context.settings();
      const signal = interruptionSignal();
      await withStorage(config, { ...READING, signal }, async (storage) => {
        if (config.content.kind !== "none") await storage.checkContent();
        const { content: withContent, urls, json, verbose } = options;
        const counts: Counts = { same: 0, missing: 0, different: 0, failed: 0, unused: 0 };
        const queue = new SerialQueue();
        const onVerified = async (verification: Verification) => {
          const state = "unused" in verification ? "unused" : verification.outcome.state;
          counts[state]++;
          if (state === "same" && !verbose) return;
          const line = json ? JSON.stringify(toObject(verification)) : toLine(verification);
          await queue.run(() => print(line));
        };
        let done = 0;
        const onProgress = (token?: string) => {
          if (token === undefined) return showProgress("looking for unused content");
          // Tokens are random and come in order, so each shows roughly how much is done.
          const part = (parseInt(token.slice(0, 8), 16) + 1) / 2 ** 32;
          showProgress(`${(++done).toLocaleString("en")} items`, part);
        };
        let isComplete = false;
        try {
          await verify(storage, {
            withContent,
            withoutUrls: !urls,
            signal,
            onWait: reportWait,
            onVerified,
            onProgress,
          });
          isComplete = true;
        } finally {
          await print(
            json
              ? JSON.stringify({ summary: { ...counts, isComplete } })
              : summaryOf(counts, isComplete),
          );
        }
        if (counts.same < Object.values(counts).reduce((a, b) => a + b)) {
          throw new ExitError(EXIT_STATUS.refused);
        }
      });
    });
}

function toObject(verification: Verification) {
  if ("unused" in verification) return { mark: MARKS.unused, sha256: verification.unused };
  const { token, entry, outcome: { state, ...rest } } = verification;
  return { mark: MARKS[state], ...rest, ...membersOf(token, entry) };
}

function toLine(verification: Verification): string {
  if ("unused" in verification) {
    return `${MARKS.unused} ${verification.unused}  no item uses this content`;
  }
  const { token, outcome } = verification;
  const reason = "reason" in outcome ? `  ${outcome.reason}` : "";
  return `${MARKS[outcome.state]} ${token}${reason}`;
}

function summaryOf(
  { same, missing, different, failed, unused }: Counts,
  isComplete: boolean,
): string {
  const items = same + missing + different + failed;
  const what = `${items} item${items === 1 ? "" : "s"} verified`;
  const stopped = isComplete ? "" : ", stopped before the end";
  const content = isComplete ? `${unused} unused` : "the search for unused content is incomplete";
  return `${what}${stopped}: ${same} as published, ${missing} missing, ${different} different, ` +
    `${failed} not checked; ${content}`;
}
