/** The document around the content of every page. */

import { escape } from "./html.ts";
import { PAGE_STYLE } from "./style.ts";

/** Renders a page, with the style that all have. */
export function htmlPage(title: string, head: string, main: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<style>${PAGE_STYLE}</style>
${head}
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
}
