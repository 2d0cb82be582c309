/**
 * The documents that the server makes of its own routes and policy: the retirement notice, and the
 * description of the API.
 */

import { accepts } from "@std/http/negotiation";
import { noticeAt } from "../lifecycle/notice.ts";
import { noticePage } from "../lifecycle/notice_page.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { type Representation, representText } from "./representation.ts";
import type { Route } from "./route.ts";

/** What a notice depends on besides the request. */
export interface NoticeOptions {
  readonly routes: readonly Route[];
  readonly policy: Policy;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The retirement notice: a page for people, and JSON for programs that ask for it. */
export function representNotice(request: Request, options: NoticeOptions): Representation {
  const { routes, policy, now } = options;
  const endpoints = routes.filter(({ isDeprecated }) => isDeprecated).map(({ path, methods }) => ({
    path: path.replace(":token", "{token}"),
    methods: [...methods],
    successor: "/media/{token}",
  }));
  const notice = noticeAt(policy, endpoints, now);
  const validatorFields = [["Vary", "Accept"]] as const;
  if (accepts(request, "text/html", "application/json") === "application/json") {
    const text = JSON.stringify(notice, null, 2) + "\n";
    return representText({ type: "application/json", text, validatorFields });
  }
  const { html, contentSecurityPolicy } = noticePage(notice, new URL(request.url).origin);
  return representText({
    type: "text/html; charset=utf-8",
    text: html,
    validatorFields,
    contentFields: [["Content-Language", "en"], ["Content-Security-Policy", contentSecurityPolicy]],
  });
}

const descriptions = new WeakMap<Policy, Promise<Representation>>();

/**
 * The description of the API. What makes it is loaded when it is first asked for, and used once:
 * it depends on nothing that changes.
 */
export function representApi(routes: readonly Route[], policy: Policy): Promise<Representation> {
  let description = descriptions.get(policy);
  if (description === undefined) {
    description = import("./openapi.ts").then(({ describeApi }) =>
      representText({ type: "application/json", text: describeApi(routes, policy) })
    );
    descriptions.set(policy, description);
    description.catch(() => descriptions.delete(policy)); // the next request tries again
  }
  return description;
}
