/** Registering tests that need more than bare `deno test` grants, or than every machine has. */

import { within } from "./within.ts";

const TIMEOUT = 600_000;

/** What a test may need, with the permissions for it. */
const PERMISSIONS = {
  environment: ["env"], // some packages read variables when they are loaded
  files: ["read", "write"],
  network: ["net"],
  processes: ["env", "net", "read", "run", "sys", "write"],
} as const satisfies Record<string, readonly Deno.PermissionName[]>;

/** A requirement beyond permissions, checked once they are granted. */
export interface Condition {
  /** Added to the name of a test that is ignored for lack of it. */
  readonly what: string;
  readonly isMet: () => boolean;
}

/** Registers a test, as `Deno.test()` does. */
export type Test = (
  name: string,
  fn: (context: Deno.TestContext) => void | Promise<void>,
) => void;

/** A requirement. */
export type Need = keyof typeof PERMISSIONS | Condition;

/**
 * Returns a function that registers tests with requirements. Tests whose requirements are not met
 * are ignored, and their names say what is missing, and which task grants it. A test that hangs
 * fails after ten minutes, so that the others are still run.
 */
export function needing(...needs: Need[]): Test {
  const missing = missingOf(needs);
  const bounded = (name: string, fn: Parameters<Test>[1]) => async (context: Deno.TestContext) =>
    await within(`the end of "${name}"`, Promise.resolve(fn(context)), { timeout: TIMEOUT });
  if (missing === "") return (name, fn) => Deno.test(name, bounded(name, fn));
  // The name gives the reason, and `.ci/run` fails for it.
  return (name, fn) => Deno.test({ name: `${name} (needs ${missing})`, ignore: true, fn });
}

/**
 * Starts a resource shared by all tests of a file before the first one, and ends it after the last.
 *
 * @param needs Requirements, without which it is not started, and the tests that use it are
 *   ignored.
 */
export function shared<T extends AsyncDisposable>(
  needs: readonly Need[],
  start: () => Promise<T>,
): () => T {
  let started: T | undefined;
  if (missingOf(needs) === "") {
    Deno.test.beforeAll(async () => {
      started = await start();
    });
    Deno.test.afterAll(async () => await started?.[Symbol.asyncDispose]());
  }
  return () => started as T;
}

/** Describes the requirements that are not met; empty if all are. */
export function missingOf(needs: readonly Need[]): string {
  const kinds = new Set(needs.filter((need) => typeof need === "string"));
  const denied = [...kinds].filter((kind) => !PERMISSIONS[kind].every(isGranted));
  const conditions = needs.filter((need) => typeof need !== "string");
  return denied.length > 0
    ? `${denied.join(" and ")}: deno task test`
    : conditions.filter(({ isMet }) => !isMet()).map(({ what }) => what).join(" and ");
}

/** Whether a permission is granted, without prompting. */
function isGranted(name: Deno.PermissionName): boolean {
  return Deno.permissions.querySync({ name }).state === "granted";
}

/** Linux, for /proc and for programs whose options differ elsewhere. */
export const LINUX: Condition = {
  what: "Linux with /proc",
  isMet: () => Deno.build.os === "linux" && isFile("/proc/self/status"),
};

/** A program that is installed. */
export function program(name: string): Condition {
  return { what: name, isMet: () => pathOf(name) !== undefined };
}

/** Finds a program. Debian installs some in root's path only, and PostgreSQL's by version. */
export function pathOf(program: string): string | undefined {
  const folders = [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/sbin", ...postgresFolders()];
  return folders.map((folder) => `${folder}/${program}`).find(isFile);
}

/** Returns the folders of PostgreSQL's programs on Debian, latest version first. */
function postgresFolders(): string[] {
  const all = "/usr/lib/postgresql";
  try {
    const versions = [...Deno.readDirSync(all)].map(({ name }) => Number(name));
    return versions.sort((a, b) => b - a).map((version) => `${all}/${version}/bin`);
  } catch {
    return []; // not installed
  }
}

/** Whether a file exists. */
export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
