/**
 * The errors section of the notice page: each problem type, under the id that its URI links to.
 */

import { escape } from "@std/html/entities";
import type { ProblemType } from "../http/problem.ts";
import { code, rfc } from "./notice_html.ts";

/** Renders the section, with the problem types by id. */
export function errors(types: Readonly<Record<string, ProblemType>>): string {
  const rows = Object.entries(types).map(([name, { status, title, meaning }]) =>
    `<div id="${escape(name)}"><dt><a href="#${escape(name)}">${escape(title)}</a> ` +
    `${code(String(status))}</dt>\n<dd>${escape(meaning)}</dd></div>`
  );
  return `<section>
<h2>Errors</h2>
<p>Errors on GET are problem details (${rfc(9457)}), whose ${code("type")} links to an entry in this
list. On the old paths, ${code("successor")} is the item's replacement, and ${code("documentation")}
explains the retirement.</p>
<dl class="errors">
${rows.join("\n")}
</dl>
</section>`;
}
