// What a user of the package writes who compiles to require(); it is type-checked, and never runs.

import lifecycle = require("@media-head/lifecycle");
import type { IncomingMessage } from "node:http";

const policy: lifecycle.Policy = lifecycle.definePolicy({ deprecatedAt: "2026-11-21" });
const isOld: (request: IncomingMessage | Request | string | URL) => boolean = lifecycle.pathsUnder(
  "/v1",
  { caseSensitive: true, collapse: false },
);
const state: lifecycle.State = lifecycle.inspect({ status: 200, headers: new Map() }).state;
// @ts-expect-error -- it has no status
lifecycle.inspect({} as IncomingMessage);
export = { isOld, policy, state };
