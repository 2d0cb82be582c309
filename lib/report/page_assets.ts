/**
 * The style sheet of the report page: that of the notice, and what only the report shows.
 */

import { NOTICE_STYLE } from "../documents/notice_style.ts";

/** Contrast is at least 4.5 for text and 3 for bars, in both colour schemes. */
export const USAGE_PAGE_STYLE = `${NOTICE_STYLE}
main { max-width: 52rem; }
section:not(.verdict) > p { color: var(--soft); }
.verdict { border-color: var(--deprecated); background: var(--panel); overflow-wrap: anywhere; }
.verdict.clear { border-color: #1d7a46; }
.verdict.called { border-color: var(--brownout); }
.verdict strong { font-size: 1.1rem; }
.days { max-height: 40rem; color: var(--soft); font-size: .8rem; }
.days :is(th, td) { padding-block: .1rem; vertical-align: top; font-weight: 400; }
.days td:last-child { width: 100%; white-space: normal; }
.bars { display: flex; print-color-adjust: exact; }
.bars span { height: 1rem; min-width: 1px; }
.scroll { overflow: auto; margin-top: .75rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.clients { width: 100%; font-size: .9rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
.clients th[scope=row] { font-weight: 600; white-space: normal; min-width: 10rem; overflow-wrap: anywhere; }
.number { text-align: right; }
.note { color: var(--soft); font-size: .875rem; }
@media (max-width: 52rem) { /* too narrow for columns: a list for each client */
  .clients, .clients :is(thead, tbody, tr, th, td) { display: block; }
  .clients :is(th, td) { padding: .1rem 0; border: 0; white-space: normal; }
  .clients tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .clients thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; }
  .clients td { display: flex; justify-content: space-between; gap: 1rem; }
  .clients td::before { content: attr(data-label); color: var(--soft); }
}
@media print { .days { max-height: none; } }
`;
