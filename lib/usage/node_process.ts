/** This process, on Node. */

import { hostname } from "node:os";
import process from "node:process";
import type { ProcessIdentity } from "./records.ts";

export function thisProcess(): ProcessIdentity {
  const started = Math.round(performance.timeOrigin);
  return { machine: hostNameOf(), pid: process.pid, started };
}

function hostNameOf(): string | undefined {
  try {
    return hostname();
  } catch { // Deno without --allow-sys=hostname
    return undefined;
  }
}
