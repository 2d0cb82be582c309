/**
 * Style and script of the notice.
 */

/** Text has a contrast of at least 4.5 on its background, in both colour schemes. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606b; --line: #d8dce2;
  --panel: #f4f6f8; --link: #1a5fc8; --deprecated: #b26a00; --brownout: #c02f37;
  --announced: #2d6fd0; --removed: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --back: #121519; --text: #e7e9ed; --soft: #a2abb7;
  --line: #333943; --panel: #1b1f25; --link: #82b1ff; --deprecated: #e8a33d; --brownout: #ff8086;
  --announced: #7fb0ff; --removed: #9aa3af; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 3.5rem) 1.25rem 4rem; }
h1 { font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.25; margin: 0 0 .5rem;
  letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .35rem; color: var(--soft); font-weight: 600; }
p { margin: .35rem 0; }
.lead { font-size: 1.1rem; color: var(--soft); }
a { color: var(--link); }
code { font: .92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { margin: .35rem 0; padding: .8rem 1rem; overflow-x: auto; background: var(--panel);
  border: 1px solid var(--line); border-radius: 8px; line-height: 1.5; }
pre code { font-size: .85em; }
.banner { margin: 1.75rem 0 1.25rem; padding: 1rem 1.25rem; background: var(--panel);
  border-left: 5px solid var(--deprecated); border-radius: 8px; }
.banner.announced { border-color: var(--announced); }
.banner.brownout { border-color: var(--brownout); }
.banner.removed { border-color: var(--removed); }
.banner .state { margin: 0; color: var(--soft); font-size: .8rem; font-weight: 600;
  letter-spacing: .06em; text-transform: uppercase; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem;
  margin: 1.25rem 0 0; }
.facts div { padding: .9rem 1.25rem; border: 1px solid var(--line); border-radius: 8px; }
dt { color: var(--soft); font-size: .9rem; }
dd { margin: 0; font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; }
time { font-variant-numeric: tabular-nums; white-space: nowrap; }
td time, time .local { white-space: normal; }
time .local { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }
.banner time .local { display: inline; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { width: 100%; border-collapse: collapse; font-size: .95rem; }
th, td { padding: .5rem .9rem .5rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-size: .85rem; font-weight: 600; }
@media (max-width: 40rem) { th, td { padding-right: .6rem; white-space: normal; } }
tr.over { color: var(--soft); }
tr.on td { font-weight: 600; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media print { pre, .banner { border-color: #999; } }
`;

/** Adds the reader's local time to every date, unless it is UTC as well. */
export const PAGE_SCRIPT = `
const format = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium", timeStyle: "short",
});
if (new Date().getTimezoneOffset() !== 0) {
  for (const time of document.querySelectorAll("time")) {
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = " (" + format.format(new Date(time.dateTime)) + " your time)";
    time.append(local);
  }
}
`;
