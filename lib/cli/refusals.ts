/** The refusals of an import, for people. */

import { printable } from "../input/printable.ts";
import { printError } from "./print.ts";

/** How many refusals of one kind are printed. */
const LIMIT = 20;

interface Kind {
  count: number;
  /** The line of the last one that is printed. */
  last: number;
}

/** Prints refusals as they come, but of each kind only the first twenty. The others are counted. */
export class Refusals {
  readonly #kinds = new Map<string, Kind>();
  readonly #missing: Kind = { count: 0, last: 0 };
  /** Lines about missing content, held back until other content is found. */
  #held: string[] | undefined = [];

  /** @param place The place of the content, for messages. */
  constructor(readonly place: string) {}

  /** @param isMissing Whether content that should be in storage is not there. */
  add(line: number, reason: string, isMissing: boolean): void {
    const kind = isMissing ? this.#missing : this.#kindOf(reason);
    if (++kind.count > LIMIT) return;
    kind.last = line;
    const text = `media: line ${line}: ${printable(reason)}`;
    if (isMissing && this.#held !== undefined) this.#held.push(text);
    else printError(text);
  }

  /** Tells that some content is in storage. */
  find(): void {
    for (const text of this.#held ?? []) printError(text);
    this.#held = undefined;
  }

  /** Prints what is left to say at the end. */
  end(): void {
    const { count } = this.#missing;
    if (this.#held !== undefined && count > LIMIT) {
      const remedy = "copy the content there first, or correct CONTENT";
      printError(
        `media: none of the content of ${numberOf(count)} lines is in ${this.place}: ${remedy}`,
      );
    } else {
      this.find();
      this.#kinds.set("", this.#missing);
    }
    for (const { count, last } of this.#kinds.values()) {
      if (count <= LIMIT) continue;
      const more = `${numberOf(count - LIMIT)} more lines refused like line ${last}`;
      printError(`media: ${more}; --rejects and --json have all of them`);
    }
  }

  #kindOf(reason: string): Kind {
    const [, member = "", rest = ""] = /^("\w+" is\b)?(.*)$/s.exec(reason) ?? [];
    // Values are quoted, or have digits or slashes.
    const key = member + rest.replace(/".*"/s, "…").replaceAll(/\S*[\d/]\S*/g, "…");
    const kind = this.#kinds.get(key) ?? { count: 0, last: 0 };
    this.#kinds.set(key, kind);
    return kind;
  }
}

function numberOf(count: number): string {
  return count.toLocaleString("en");
}
