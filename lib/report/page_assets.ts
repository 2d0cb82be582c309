/**
 * The style sheet of the report page.
 */

/** Contrast is at least 4.5 for text and 3 for bars, in both colour schemes. */
export const USAGE_PAGE_STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1c1f24; --soft: #5a6270; --line: #d9dde3;
  --panel: #f5f6f8; --deprecated: #2f6fde; --announced: #6b8fb8; --brownout: #b86a00;
  --removed: #c2353c; --clear: #1d7a46; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e8eaee; --soft: #a3abb8;
  --line: #343a44; --panel: #1d2127; --deprecated: #6ea2ff; --announced: #7e9ab8;
  --brownout: #e59a2f; --removed: #ff7b80; --clear: #5fce91; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; }
p { margin: .25rem 0; }
.lead, section > p { color: var(--soft); }
code { font: .95em ui-monospace, monospace; }
.verdict { margin: 1.5rem 0; padding: .9rem 1.1rem; background: var(--panel);
  border-left: 4px solid var(--brownout); border-radius: 4px; }
.verdict.clear { border-color: var(--clear); }
.verdict.called { border-color: var(--removed); }
.verdict p { color: inherit; }
.verdict ul { margin: .25rem 0; padding-left: 1.2rem; overflow-wrap: anywhere; }
.days { max-height: 40rem; color: var(--soft); font-size: .8rem; }
.days :is(th, td) { padding-block: .1rem; vertical-align: top; }
.days td:last-child { width: 100%; white-space: normal; }
.days th { font-weight: 400; }
.bars { display: flex; print-color-adjust: exact; }
.bars span { height: 1rem; min-width: 1px; background: var(--deprecated); }
.bars .announced { background: var(--announced); } .bars .brownout { background: var(--brownout); }
.bars .removed { background: var(--removed); }
.scroll { overflow: auto; margin-top: .75rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.clients { width: 100%; font-size: .9rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
.clients th[scope=row] { font-weight: 600; white-space: normal; min-width: 10rem; overflow-wrap: anywhere; }
.number { text-align: right; }
.note { color: var(--soft); font-size: .875rem; }
.scroll:focus-visible { outline: 2px solid var(--deprecated); outline-offset: 2px; }
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
