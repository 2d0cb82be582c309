/**
 * The style sheet of the report page.
 */

/** Contrast is at least 4.5 for text and 3 for bars, in both colour schemes. */
export const USAGE_PAGE_STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1c1f24; --soft: #5a6270; --line: #d9dde3;
  --panel: #f5f6f8; --deprecated: #2f6fde; --announced: #6b8fb8; --brownout: #b86a00;
  --removed: #c2353c; --clear: #1d7a46; --shade: #f6dfb8; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e8eaee; --soft: #a3abb8;
  --line: #343a44; --panel: #1d2127; --deprecated: #6ea2ff; --announced: #7e9ab8;
  --brownout: #e59a2f; --removed: #ff7b80; --clear: #5fce91; --shade: #4a3a1c; } }
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
.chart { display: grid; grid-template: 13rem 1.5rem / var(--axis) 1fr; gap: 0 .6rem;
  margin-top: 1.25rem; color: var(--soft); font-size: .75rem; font-variant-numeric: tabular-nums; }
.calls, .dates { position: relative; }
.calls span, .dates span { position: absolute; line-height: 1; white-space: nowrap; }
.calls span { right: 0; transform: translateY(-50%); }
.dates { grid-column: 2; }
.dates span { top: .5rem; transform: translateX(-50%); }
svg { display: block; width: 100%; height: 100%; overflow: visible; }
svg line { vector-effect: non-scaling-stroke; }
.grid { stroke: var(--line); }
line.sunset { stroke: var(--removed); stroke-width: 2; stroke-dasharray: 4 3; }
rect.shade { fill: var(--shade); } rect.unknown { fill: var(--line); opacity: .5; }
rect.announced { fill: var(--announced); } rect.deprecated { fill: var(--deprecated); }
rect.brownout { fill: var(--brownout); } rect.removed { fill: var(--removed); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; color: var(--soft); font-size: .875rem; }
.key { display: inline-block; width: .75rem; height: .75rem; margin-right: .4rem;
  border-radius: 2px; vertical-align: -1px; }
.key.announced { background: var(--announced); } .key.deprecated { background: var(--deprecated); }
.key.brownout { background: var(--brownout); } .key.removed { background: var(--removed); }
.key.shade { background: var(--shade); } .key.unknown { background: var(--line); } .key.sunset { height: 0; border-radius: 0;
  border-top: 2px dashed var(--removed); vertical-align: 4px; }
details { color: var(--soft); font-size: .875rem; }
summary { cursor: pointer; }
.scroll { overflow-x: auto; margin-top: .75rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.clients { width: 100%; font-size: .9rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th[scope=row] { font-weight: 600; white-space: normal; min-width: 10rem; overflow-wrap: anywhere; }
.number { text-align: right; }
.note { color: var(--soft); font-size: .875rem; }
.scroll:focus-visible, summary:focus-visible {
  outline: 2px solid var(--deprecated); outline-offset: 2px; }
@media (max-width: 52rem) { /* too narrow for columns: a list for each client */
  .clients, .clients :is(thead, tbody, tr, th, td) { display: block; }
  .clients :is(th, td) { padding: .1rem 0; border: 0; white-space: normal; }
  .clients tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .clients thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; }
  .clients td { display: flex; justify-content: space-between; gap: 1rem; }
  .clients td::before { content: attr(data-label); color: var(--soft); }
}
@media print { details { display: none; } }
`;
