/**
 * Tests that need more than bare `deno test` grants, or more than every machine has.
 */

/** What a test may need, and which permissions that takes. */
const PERMISSIONS = {
  environment: ["env"], // some packages read variables of theirs when they are loaded
  files: ["read", "write"],
  network: ["net"],
  processes: ["env", "net", "read", "run", "sys", "write"],
} as const satisfies Record<string, readonly Deno.PermissionName[]>;

/** Something that permissions alone do not bring, and that is looked for once they are there. */
export interface Condition {
  /** For the name of a test that is ignored without it. */
  readonly what: string;
  readonly isMet: () => boolean;
}

/** Registers a test, as `Deno.test()` does. */
export type Test = (
  name: string,
  fn: (context: Deno.TestContext) => void | Promise<void>,
) => void;

/** What something may need. */
export type Need = keyof typeof PERMISSIONS | Condition;

/**
 * Gives what registers tests that need permissions. Without them, tests are ignored, and their
 * names say what they need, and which task grants it.
 */
export function needing(...needs: Need[]): Test {
  const missing = missingOf(needs);
  if (missing === "") return (name, fn) => Deno.test(name, fn);
  return (name, fn) => Deno.test({ name: `${name} (needs ${missing})`, ignore: true, fn });
}

/**
 * Starts what all tests of a file share before the first of them, and ends it after the last.
 *
 * @param needs Without these, it is not started: the tests that use it are ignored.
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

/** What is not there of what is needed, in words; empty when all is. */
export function missingOf(needs: readonly Need[]): string {
  const kinds = needs.filter((need) => typeof need === "string");
  const denied = kinds.filter((kind) => !PERMISSIONS[kind].every(isGranted));
  const conditions = needs.filter((need) => typeof need !== "string");
  return denied.length > 0
    ? `${denied.join(" and ")}: deno task test`
    : conditions.filter(({ isMet }) => !isMet()).map(({ what }) => what).join(" and ");
}

/** Whether a permission is granted, without asking anybody for it. */
function isGranted(name: Deno.PermissionName): boolean {
  return Deno.permissions.querySync({ name }).state === "granted";
}

/** Linux, for what is read from /proc, and for programs that have other options elsewhere. */
export const LINUX: Condition = { what: "Linux", isMet: () => Deno.build.os === "linux" };

/** A program that is installed. */
export function program(name: string): Condition {
  return { what: name, isMet: () => pathOf(name) !== undefined };
}

/** Where a program is. Debian keeps some where only root looks, and PostgreSQL's by its version. */
export function pathOf(program: string): string | undefined {
  const folders = [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/sbin", ...postgresFolders()];
  return folders.map((folder) => `${folder}/${program}`).find(isFile);
}

/** Where Debian keeps PostgreSQL's programs, the latest version first. */
function postgresFolders(): string[] {
  const all = "/usr/lib/postgresql";
  try {
    const versions = [...Deno.readDirSync(all)].map(({ name }) => Number(name));
    return versions.sort((a, b) => b - a).map((version) => `${all}/${version}/bin`);
  } catch {
    return []; // there is none
  }
}

/** Whether there is such a file. */
export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
