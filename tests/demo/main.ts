/**
 * `deno task demo`: what an operator, a client's owner and its developers see after a year, on a record
 * that is made for the purpose. Says so at once, prints the report and the gate's answer, and serves
 * the pages until Ctrl-C. Everything is in memory, so it leaves nothing behind, however it ends.
 */

import { PROGRAM } from "../../lib/cli/usage.ts";
import { EXIT_STATUS } from "../../lib/errors/exit_status.ts";
import { usagePage } from "../../lib/usage/output/operator_page.ts";
import { ownerPage } from "../../lib/usage/output/owner_page.ts";
import { gateText, usageText } from "../../lib/usage/output/text.ts";
import { liveThroughYear } from "./year.ts";

/** The client whose owner gets a page. */
const CLIENT = "app MyPod";

console.log(
  `This is a year that never was: two apps call /audio and /video less and less, through three
brownouts. It is made in memory, which takes some seconds. You then see the report on its last 30
days, and what the gate answers, and can open the pages.
`,
);
const { answer, report, ownerFacts, sample } = await liveThroughYear();
const [ofAll, ofClient] = [await report(), await report(CLIENT)];
console.log(`$ deno task media usage
${usageText(ofAll, PROGRAM)}

$ deno task media usage --gate; echo "exit status $?"
${gateText(ofAll, PROGRAM)}
exit status ${EXIT_STATUS[ofAll.state]}
`);

const pageAt = (url: URL): string | undefined => {
  if (url.pathname === "/report.html") return usagePage(ofAll, PROGRAM);
  if (url.pathname !== "/owner.html") return undefined;
  return ownerPage(ofClient, { ...ownerFacts, publicUrl: url.origin });
};
Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => {
    const origin = `http://127.0.0.1:${port}`;
    console.log(`The pages, until you press Ctrl-C:
  ${origin}/report.html  the report for the operator
  ${origin}/owner.html   the page for the owner of ${CLIENT}
  ${origin}/deprecation  the notice for developers of clients

The server of that year, until then:
  curl -I ${origin}${sample}`);
  },
}, async (request) => {
  const page = pageAt(new URL(request.url));
  if (page === undefined) return await answer(request);
  return new Response(page, { headers: { "Content-Type": "text/html; charset=utf-8" } });
});
