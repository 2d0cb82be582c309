/**
 * The check that this release of Deno can run the server and the commands. `main.ts` imports this
 * module first, so the check runs before any other module does. Releases that fail it must still
 * link the others: import what they may lack by a namespace, as in `import * as util`.
 */

/**
 * The oldest release that runs. From 2.8.3 to 2.9.1, every HEAD has `content-length: 0`, whatever
 * the handler sets (denoland/deno#35728). Before that, a GET may be compressed where its HEAD is
 * not. And before 2.8, parts of Node that are used here are missing.
 */
const OLDEST = "2.9.2";

/**
 * Returns the message for a release that is too old; `undefined` for others.
 *
 * @param version e.g. `2.9.6`.
 */
export function refusalOfRelease(version: string): string | undefined {
  if (rankOf(version) >= rankOf(OLDEST)) return undefined;
  return `media-head cannot run on Deno ${version}: it needs Deno ${OLDEST} or later`;
}

/** Returns a number by which releases are ordered. */
function rankOf(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number);
  return (major * 1_000 + minor) * 1_000 + patch;
}

const refusal = refusalOfRelease(Deno.version.deno);
if (refusal !== undefined) {
  console.error(refusal);
  Deno.exit(2); // not 1, which would be a verdict of the gate
}
