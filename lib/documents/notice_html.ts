/** HTML fragments for the notice page. */

import { escape } from "@std/html/entities";

export function rfc(number: number): string {
  return `<a href="https://www.rfc-editor.org/rfc/rfc${number}">RFC ${number}</a>`;
}

export function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

/** Renders the server's origin, or a placeholder that a script fills in. */
export function originIn(publicUrl: string | undefined): string {
  return publicUrl === undefined ? `<span class="origin">{origin}</span>` : escape(publicUrl);
}

/** Renders a code block that scrolls on its own, also by keyboard. */
export function block(label: string, html: string): string {
  return `<pre tabindex="0" role="region" aria-label="${label}"><code>${html}</code></pre>`;
}

/** Renders a date in UTC, to which a script adds the local time. */
export function time(instant: string): string {
  const text = instant.replace("T", " ").replace(/(:00)?Z$/, " UTC");
  return `<time datetime="${escape(instant)}">${escape(text)}</time>`;
}

/** Formats the time between two instants, e.g. "1 day, 8 hr, 30 min". */
export function duration(start: string, end: string): string {
  const length = Temporal.Instant.from(start).until(end).round({ largestUnit: "hours" });
  const [days, hours] = [Math.floor(length.hours / 24), length.hours % 24];
  return new Intl.DurationFormat("en", { style: "short" }).format(length.with({ days, hours }));
}
