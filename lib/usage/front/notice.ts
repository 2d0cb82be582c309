/** The notice of a proxy: for people as a page, for programs as JSON. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { type Notice, noticeAt } from "../../lifecycle/notice.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { prefersJson } from "../../pages/accept.ts";
import { code } from "../../pages/html.ts";
import { noticeDocument, rfc } from "../../pages/notice_document.ts";
import { checkInCi, contactLink, dates } from "../../pages/notice_parts.ts";
import { state } from "../../pages/notice_state.ts";
import { pathText } from "../output/phrase.ts";
import type { FrontSettings } from "./settings.ts";

/** Serves the notice to GET and HEAD. */
export async function serveNotice(
  request: IncomingMessage,
  response: ServerResponse,
  settings: Pick<FrontSettings, "contact" | "routes">,
  policies: RoutePolicies,
): Promise<void> {
  const { method = "" } = request;
  if (method !== "GET" && method !== "HEAD") {
    response.writeHead(405, {
      Allow: "GET, HEAD",
      "Cache-Control": "no-store",
      "Content-Length": 0,
    });
    response.end();
    request.resume();
    return;
  }
  const now = Date.now();
  const notice = noticeOf(settings, policies, now);
  const accept = request.headers.accept ?? null;
  const isJson = prefersJson({ get: () => accept });
  const page = isJson ? undefined : await noticeDocument(notice, contentOf(notice, now));
  const content = new TextEncoder().encode(page?.html ?? `${JSON.stringify(notice, null, 2)}\n`);
  response.writeHead(200, {
    "Content-Type": isJson ? "application/json" : "text/html; charset=utf-8",
    "Content-Length": content.length,
    "Cache-Control": "no-cache", // its state changes with time, and with a hold
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
    ...page && { "Content-Language": "en", "Content-Security-Policy": page.contentSecurityPolicy },
  });
  response.end(method === "HEAD" ? undefined : content);
}

function noticeOf(
  { contact, routes }: Pick<FrontSettings, "contact" | "routes">,
  policies: RoutePolicies,
  now: number,
): Notice {
  const endpoints = routes.map(({ name, policy, successor }) => ({
    path: pathText(name),
    methods: [],
    ...successor === undefined ? {} : { successor: pathText(successor) },
    policy: policies[name] ?? policy,
  }));
  const [first] = endpoints;
  return noticeAt((first as typeof first & object).policy, endpoints, { now, contact });
}

const REDIRECTED = "Requests are redirected to the replacement with 308.";

function contentOf(notice: Notice, now: number): string {
  const lines = notice.endpoints.flatMap(({ path, successor }) =>
    successor === undefined ? [] : [`<li>${code(path)} becomes ${code(successor)}</li>`]
  );
  const changes = lines.length === 0 ? "" : `<section>
<h2>What to do</h2>
<p>Change the beginning of the path. What follows it, and the query, stay the same:</p>
<ul>
${lines.join("\n")}
</ul>
</section>
`;
  return `${state(notice, REDIRECTED)}
${changes}<section>
<h2>Dates</h2>
${dates(notice, { now })}
${contactLink(notice.contact)}
</section>
<section>
<h2>For programs</h2>
<p>Every response from these paths, and from all below them, has these fields:</p>
<ul>
<li>${code("Deprecation: @SECONDS")} (${rfc(9745)}): the date from which the path is deprecated, in
Unix seconds.</li>
<li>${code("Sunset: DATE")} (${rfc(8594)}), once a date is set: the date on which the path is
removed.</li>
<li>${code("Link")} (${rfc(8288)}): ${
    code("successor-version")
  } leads to the replacement, if there is
one; ${code("deprecation")} and ${code("sunset")} lead to an explanation.</li>
</ul>
<p>A date in ${code("Retry-After")} means a brownout: the replacement works meanwhile.</p>
${checkInCi()}
<p>Request this page with ${
    code("Accept: application/json")
  } to get the paths and dates as JSON.</p>
</section>`;
}
