/** This process, on Node. `node:os` is not imported, for the same reason as in `lib/database/sqlite/node_runtime.ts`. */

import type { ProcessIdentity } from "./records.ts";

export function thisProcess(): ProcessIdentity {
  const started = Math.round(performance.timeOrigin);
  return { machine: hostNameOf(), pid: globalThis.process.pid, started };
}

function hostNameOf(): string | undefined {
  try {
    return globalThis.process.getBuiltinModule?.("node:os").hostname(); // missing before Node 20.16
  } catch { // Deno without --allow-sys=hostname
    return undefined;
  }
}
