/**
 * Path templates as in OpenAPI.
 */

/** Returns a route's path with `{token}` in place of `:token`. */
export function templateOf(path: string): string {
  return path.replace(":token", "{token}");
}
