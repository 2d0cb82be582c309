/** The names of routes. */

/**
 * Returns whether a name is a route's own, or that of a part of it: of `/v1`, each name that begins
 * with `/v1 for `, such as `/v1 for acme`. Whoever asks about a route, or holds it, means its parts,
 * too.
 */
export function isPartOf(route: string, name: string): boolean {
  return name === route || name.startsWith(`${route} for `);
}
