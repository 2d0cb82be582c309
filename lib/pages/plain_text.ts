/** Dates and lists as pages write them: plain text, which is not escaped yet. */

/** Formats a day or an instant for people, e.g. "22 Nov 2026" or "22 Nov 2026, 10:00 UTC". */
export function dateText(instant: string): string {
  const [, day, clock] = /, 0?(.*) (\d\d:\d\d)/.exec(new Date(instant).toUTCString()) ?? [];
  return instant.includes("T") ? `${day}, ${clock} UTC` : `${day}`;
}

/** Lists words in a sentence, e.g. "a, b, and c". */
export function listOf(words: readonly string[]): string {
  return new Intl.ListFormat("en").format(words); // made here, because the first one takes 25 ms
}
