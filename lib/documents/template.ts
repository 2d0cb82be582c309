/**
 * Paths as OpenAPI and people write them.
 */

/** The path of a route with `{token}` in the place of its token. */
export function templateOf(path: string): string {
  return path.replace(":token", "{token}");
}
