/** The sentences on what the gate's probe found to hide calls, and what to do about it. */

import { PROBE_FIELD } from "../record/client_names.ts";
import type { Answer, HiddenCalls } from "../verdict/hidden_calls.ts";
import type { UsageReport } from "../verdict/report.ts";
import { instant, p, type Phrase, program } from "./phrase.ts";

/**
 * Says why calls to routes may not reach the servers. It may be more than one sentence.
 *
 * @param routes What the sentence calls the routes, e.g. "it" or "/v1/songs".
 */
export function hiddenText(
  hidden: HiddenCalls,
  routes: Phrase,
  { probe }: Pick<UsageReport, "probe">,
): Phrase {
  const url = probe?.url ?? ""; // calls are hidden only by what a probe found
  switch (hidden.reason) {
    case "brownout":
      return uncachedText("in a brownout", routes, hidden.until);
    case "phase ends":
      return uncachedText("just before a phase ends", routes, hidden.until);
    case "too many probes":
      return p`too many probes were counted today, so this one has no line of its own: probe again
        tomorrow (UTC)`;
    case "cached":
      return p`a cache in front of ${url} answers calls to ${routes} for the servers: exclude ${routes}
        from the cache`;
    default:
      return p`${url} ${answerText(hidden)}. To leave the probe out, ${program("howNotToProbe")}`;
  }
}

function uncachedText(when: string, routes: Phrase, until: number): Phrase {
  return p`no response may be cached ${when}, so probe ${routes} after ${instant(until)}`;
}

function answerText(answer: Answer): string {
  switch (answer.reason) {
    case "redirect":
      return `redirects to ${answer.location} (${answer.status})`;
    case "credentials":
      return `asks for credentials (${answer.status})`;
    case "rate limit":
      return `limits the rate of requests (${answer.status})`;
    case "not counted":
      return `answers (${answer.status}), and no process counted the request under the probe's ` +
        `name: a cache answered, it is another deployment, or something removes the field ` +
        PROBE_FIELD;
    case "no answer":
      return `does not answer (${answer.message})${answer.isUntrusted ? HOW_TO_TRUST : ""}`;
  }
}

const HOW_TO_TRUST =
  ". If you trust its certificate, name the file of its issuer's certificate in " +
  ("Deno" in globalThis ? "DENO_CERT" : "NODE_EXTRA_CA_CERTS");
