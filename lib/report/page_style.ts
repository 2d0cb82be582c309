/** The style sheet of the report page. */

/** Contrast is at least 4.5 for text and 3 for bars and marks, in both colour schemes. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606b; --line: #d8dce2;
  --panel: #f5f6f8; --calls: #1a5fc8; --brownout: #c02f37; --clear: #1d7a46; --unknown: #b26a00; }
@media screen and (prefers-color-scheme: dark) { :root { --back: #121519; --text: #e7e9ed;
  --soft: #a2abb7; --line: #333943; --panel: #1b1f25; --calls: #82b1ff; --brownout: #ff8086;
  --clear: #52b788; --unknown: #e8a33d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.6 system-ui, sans-serif;
  overflow-wrap: anywhere; font-variant-numeric: tabular-nums; print-color-adjust: exact; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0; text-wrap: balance; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; break-after: avoid; }
p, ul, ol { margin: .35rem 0; }
.soft, .axis, figcaption, details, thead { color: var(--soft); font-size: .875rem; }
.verdict { margin: 1.5rem 0; padding: .75rem 1.25rem; background: var(--panel);
  border-left: 6px solid var(--unknown); border-radius: 8px; }
.verdict.clear { border-color: var(--clear); }
.verdict.called { border-color: var(--brownout); }
table { width: 100%; table-layout: fixed; border-collapse: collapse; font-size: .8rem; }
th, td { width: 18.5%; padding: .4rem .5rem .4rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
:is(th, td):first-child { width: 25%; }
:is(th, td):nth-child(2) { width: 8%; text-align: right; padding-right: 1rem; }
:is(th, td):nth-child(5) { width: 12%; }
figure { margin: .5rem 0; break-inside: avoid; }
svg { display: block; width: 100%; height: 6rem; border-bottom: 1px solid var(--line); }
.calls { fill: var(--calls); color: var(--calls); }
.brownout { fill: var(--brownout); color: var(--brownout); }
.incomplete { fill: var(--soft); color: var(--soft); }
.axis { display: flex; justify-content: space-between; }
figcaption span { display: inline-block; margin-right: 1rem; }
@media (max-width: 60rem) { /* too narrow for columns: a list for each client */
  table, tbody, tr, th, td, :is(th, td):nth-child(n) { display: block; width: auto; }
  thead { display: none; }
  tbody tr { padding: .5rem 0; border-bottom: 1px solid var(--line); break-inside: avoid; }
  :is(th, td):nth-child(n) { padding: .1rem 0; border: 0; text-align: left; }
  td::before { content: attr(data-label) ": "; color: var(--soft); }
}
`;
