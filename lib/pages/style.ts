/** The style sheet of every page. */

/** Text has a contrast of at least 4.5 in both colour schemes. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606b; --line: #d8dce2;
  --panel: #f5f6f8; --link: #1a5fc8;
  --announced: #2d6fd0; --announced-back: #eef4fd; --deprecated: #b26a00; --deprecated-back: #fdf5e8;
  --brownout: #c02f37; --brownout-back: #fdf0f0; --removed: #6b7280; --removed-back: #f1f2f4; }
@media screen and (prefers-color-scheme: dark) { :root { --back: #121519; --text: #e7e9ed;
  --soft: #a2abb7; --line: #333943; --panel: #1b1f25; --link: #82b1ff;
  --announced: #7fb0ff; --announced-back: #172234; --deprecated: #e8a33d; --deprecated-back: #2a2114;
  --brownout: #ff8086; --brownout-back: #311a1d; --removed: #9aa3af; --removed-back: #20242a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 46rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 3.5rem) 1.25rem 4rem; }
h1 { font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.25; margin: 0 0 .6rem;
  letter-spacing: -.01em; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .5rem; letter-spacing: -.005em; }
h3 { font-size: 1rem; margin: 1.5rem 0 .35rem; font-weight: 600; }
p { margin: .35rem 0; text-wrap: pretty; }
a { color: var(--link); text-underline-offset: .15em; overflow-wrap: anywhere; }
code { font: .9em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
:is(h1, h2, h3) code { font-weight: 600; }
h1 code { letter-spacing: -.03em; }
.banner { margin: 1rem 0; padding: .75rem 1.25rem; border-left: 6px solid; border-radius: 8px; }
.announced { border-color: var(--announced); background: var(--announced-back); }
.deprecated { border-color: var(--deprecated); background: var(--deprecated-back); }
.brownout { border-color: var(--brownout); background: var(--brownout-back); }
.removed { border-color: var(--removed); background: var(--removed-back); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem;
  margin: 1rem 0; }
.facts div { padding: .9rem 1.25rem 1rem; border: 1px solid var(--line); border-radius: 8px; }
.facts dt { color: var(--soft); font-size: .9rem; }
.facts dd { margin: 0; font-size: 1.1rem; font-weight: 700; }
time { font-variant-numeric: tabular-nums; white-space: nowrap; }
time .local { color: var(--soft); font-size: .85rem; font-weight: 400; white-space: normal; }
.facts time .local { display: block; line-height: 1.5; }
li { margin: .35rem 0; }
.errors div { margin-top: .9rem; border-radius: 2px; scroll-margin: 1rem; }
.errors div:target { background: var(--panel); box-shadow: 0 0 0 .35rem var(--panel);
  outline: 2px solid var(--link); outline-offset: .35rem; }
.errors dt a { color: inherit; font-weight: 600; }
.errors dt code { margin-left: .25rem; color: var(--soft); }
.errors dd { margin: 0; color: var(--soft); font-size: .95rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media print {
  :root { color-scheme: light; }
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  :is(h1, h2, h3) { break-after: avoid; }
}
`;
