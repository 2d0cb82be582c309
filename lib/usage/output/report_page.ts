/** The document of a report. */

import { escape } from "../../pages/html.ts";
import { htmlPage } from "../../pages/html_page.ts";

/**
 * Renders a page without a script. It loads nothing.
 *
 * @param headline If it is another than the title, which browsers cut off.
 */
export function reportPage(title: string, style: string, main: string, headline = title): string {
  return htmlPage(
    title,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>${style}</style>`,
    `<h1>${escape(headline)}</h1>\n${main}`,
  );
}
