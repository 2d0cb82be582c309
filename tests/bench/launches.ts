/**
 * How to start this server, and the bare ones beside it.
 */

import { fromRoot } from "../support/paths.ts";
import { storageIn } from "../support/server.ts";
import type { Launch } from "./contender.ts";

/** Everything enabled: announcements with a sunset and a brownout ahead, usage, CORS. */
const EVERYTHING = {
  DEPRECATED_AT: "2026-01-01",
  SUNSET_AT: "2999-01-01",
  BROWNOUTS: "2998-01-01/P1D",
};

/** What a bare server answers. */
export interface BareAnswer {
  readonly status: number;
  readonly headers: readonly unknown[];
  readonly length: number;
  /** The file or the URL of its content. */
  readonly path?: string | undefined;
  /** Whether parts are read into the same bytes. */
  readonly reusesBytes?: boolean;
}

/** A bare `Deno.serve` that gives one answer; see floor.ts and the files named after it. */
export function launchBare(file: string, answer: BareAnswer): Launch {
  const args = ["run", "--allow-all", fromRoot(`tests/bench/${file}`), JSON.stringify(answer)];
  return { command: Deno.execPath(), args };
}

/** This server. */
export function launchServer(storage: string, environment: Record<string, string>): Launch {
  const flags = environment["REUSE_PORT"] === "true" ? ["--unstable-net"] : [];
  return {
    command: Deno.execPath(),
    args: ["run", "--allow-all", ...flags, fromRoot("main.ts")],
    env: { ...storageIn(storage), ...EVERYTHING, ...environment },
  };
}
