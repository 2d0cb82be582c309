/**
 * Tests that need more than bare `deno test` grants.
 */

/** A body of a test. */
type Body = (context: Deno.TestContext) => void | Promise<void>;

/** What a test needs to be there besides, as a word for its name and whether it is there. */
type Need = readonly [what: string, isThere: boolean];

/**
 * Registers tests that need permissions. Where one is missing, they are ignored, and their names
 * say which task grants it.
 *
 * @param names What they need, all of it.
 */
export function needing(
  ...names: Deno.PermissionName[]
): (name: string, body: Body, ...needs: Need[]) => void {
  const isGranted = names.every((name) => isGrantedAlready(name));
  return (name, fn, ...needs) => {
    const missing = needs.filter(([, isThere]) => !isThere).map(([what]) => what);
    if (!isGranted) return Deno.test({ name: `${name} (deno task test)`, ignore: true, fn });
    if (missing.length === 0) return Deno.test(name, fn);
    Deno.test({ name: `${name} (needs ${missing.join(", ")})`, ignore: true, fn });
  };
}

/** Whether a permission is granted without asking anybody. */
export function isGrantedAlready(name: Deno.PermissionName): boolean {
  return Deno.permissions.querySync({ name } as Deno.PermissionDescriptor).state === "granted";
}
