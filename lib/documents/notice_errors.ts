/**
 * What the notice's page says of errors: each type of problem at the id that its URI leads to.
 */

import { escape } from "@std/html/entities";
import type { ProblemType } from "../http/problem.ts";
import { code, rfc } from "./notice_html.ts";

/** Explains types of problem, by their ids. */
export function errors(types: Readonly<Record<string, ProblemType>>): string {
  const rows = Object.entries(types).map(([name, { status, title, meaning }]) =>
    `<div id="${escape(name)}"><dt><a href="#${escape(name)}">${escape(title)}</a> ` +
    `${code(String(status))}</dt>\n<dd>${escape(meaning)}</dd></div>`
  );
  return `<section>
<h2>Errors</h2>
<p>An error of GET says what is wrong as problem details (${rfc(9457)}). Its ${code("type")} leads
to an entry of this list. On the old paths ${code("successor")} is what replaces the very item, and
${code("documentation")} where the retirement is explained.</p>
<dl class="errors">
${rows.join("\n")}
</dl>
</section>`;
}
