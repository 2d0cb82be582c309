/** This process, on Deno. */

import type { ProcessIdentity } from "./records.ts";

export function thisProcess(): ProcessIdentity {
  const { state } = Deno.permissions.querySync({ name: "sys", kind: "hostname" });
  const machine = state === "granted" ? Deno.hostname() : undefined;
  return { machine, pid: Deno.pid, started: Math.round(performance.timeOrigin) };
}
