/** The refusals of an import, for people. */

import { printable } from "../input/printable.ts";
import { type LineRefusal, MISSING_CONTENT } from "../publishing/import/import.ts";
import type { ImportLine } from "../publishing/import/lines.ts";
import { printError } from "./print.ts";

/** How many refusals of one kind are printed. */
const LIMIT = 20;

interface Kind {
  count: number;
  /** The line of the last one that is printed. */
  shown: string;
}

/** Prints refusals as they come, but of each kind only the first twenty. The others are counted. */
export class Refusals {
  readonly #kinds = new Map<string, Kind>();
  /** Lines about missing content, held back until other content is found. */
  #held: string[] | undefined = [];

  /** @param place The place of the content, for messages. */
  constructor(readonly place: string) {}

  add({ number, last }: ImportLine, { reason, kind }: LineRefusal): void {
    const same = this.#kinds.get(kind) ?? { count: 0, shown: "" };
    this.#kinds.set(kind, same);
    if (++same.count > LIMIT) return;
    same.shown = last > number ? `lines ${number} to ${last}` : `line ${number}`;
    const text = `media: ${same.shown}: ${printable(reason)}`;
    if (kind === MISSING_CONTENT && this.#held !== undefined) this.#held.push(text);
    else printError(text);
  }

  /** Tells that some content is in storage. */
  find(): void {
    for (const text of this.#held ?? []) printError(text);
    this.#held = undefined;
  }

  /** Prints what is left to say at the end. */
  end(): void {
    const missing = this.#kinds.get(MISSING_CONTENT) ?? { count: 0, shown: "" };
    this.#kinds.delete(MISSING_CONTENT);
    if (this.#held !== undefined && missing.count > LIMIT) {
      const remedy = "copy the content there first, or correct CONTENT";
      printError(
        `media: none of the content of ${
          numberOf(missing.count)
        } lines is in ${this.place}: ${remedy}`,
      );
    } else {
      this.find();
      this.#kinds.set(MISSING_CONTENT, missing);
    }
    for (const { count, shown } of this.#kinds.values()) {
      if (count <= LIMIT) continue;
      const more = `${numberOf(count - LIMIT)} more lines refused like ${shown}`;
      printError(`media: ${more}; --rejects and --json have all of them`);
    }
  }
}

function numberOf(count: number): string {
  return count.toLocaleString("en");
}
