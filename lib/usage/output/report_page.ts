/** The document around the content of a report's page, and the styles that reports add. */

import { escape, htmlPage } from "../../pages/html.ts";

/**
 * Renders a page without a script. It loads nothing.
 *
 * @param style The style to add to that of every page.
 * @param headline The headline, if it differs from the title, which browsers cut off.
 */
export function reportPage(title: string, style: string, main: string, headline = title): string {
  return htmlPage(
    title,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>${style}</style>`,
    `<h1>${escape(headline)}</h1>\n${main}`,
  );
}

/** The style of the picture. Bars and marks have a contrast of 3 or more in both colour schemes. */
export const PICTURE_STYLE = `
.axis, figcaption, details, thead { color: var(--soft); font-size: .875rem; }
figure { margin: .5rem 0; break-inside: avoid; }
svg { display: block; width: 100%; height: 6rem; }
rect { fill: var(--link); }
rect.brownout { fill: var(--brownout); }
rect.unrecorded, rect.axis { fill: var(--soft); }
i { color: var(--link); }
i.brownout { color: var(--brownout); background: none; }
i.unrecorded { color: var(--soft); }
.axis { display: flex; justify-content: space-between; }
figcaption span { display: inline-block; margin-right: 1rem; }
`;

/** The style of the operator's page. */
export const OPERATOR_PAGE_STYLE = `${PICTURE_STYLE}
body { overflow-wrap: break-word; font-variant-numeric: tabular-nums; }
main { max-width: 78rem; }
table { width: 100%; border-collapse: collapse; font-size: .8rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
.number { text-align: right; white-space: nowrap; }
td:last-child { min-width: 9rem; }
td code { font: inherit; white-space: nowrap; }
th span { display: inline-block; width: max-content;
  max-width: clamp(12rem, 100vw - 46rem, 36rem); }
@media print {
  table, thead { font-size: 7.5pt; }
  th span { width: auto; }
  td code { white-space: normal; }
}
@media screen and (max-width: 60rem) { /* too narrow for columns: a list for each client */
  table, tbody, tr, th, th span, td { display: block; width: auto; max-width: none; }
  td code { white-space: normal; }
  thead { display: none; }
  tbody tr { padding: .5rem 0; border-bottom: 1px solid var(--line); break-inside: avoid; }
  :is(th, td):nth-child(n) { padding: .1rem 0; border: 0; text-align: left; }
  td:empty { display: none; }
  td::before { content: attr(data-label) ": "; color: var(--soft); }
}
`;
