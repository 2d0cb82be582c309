/**
 * Extraction of shared responses into components of the OpenAPI description.
 */

/** The parts of an OpenAPI description that this module uses. */
export interface DescribedPaths {
  readonly paths: Record<string, Record<string, DescribedOperation | unknown[]>>;
  readonly components: Record<string, unknown>;
}

interface DescribedOperation {
  readonly deprecated?: boolean;
  readonly responses: Record<string, unknown>;
}

/** The location of a response. */
interface Place {
  readonly path: string;
  readonly method: string;
  readonly status: string;
  readonly operation: DescribedOperation;
}

/**
 * Moves each response used in several places to the components, and replaces it with a reference,
 * unless that would be longer.
 */
export function shareResponses({ paths, components }: DescribedPaths): void {
  const places = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      Array.isArray(operation) // the parameters common to all operations
        ? []
        : Object.keys(operation.responses).map((status) => ({ path, method, status, operation }))
    )
  );
  const equals = Map.groupBy(
    places,
    ({ operation, status }) => JSON.stringify(operation.responses[status]),
  );
  const shared: Record<string, unknown> = {};
  for (const [text, among] of equals) {
    const name = nameOf(among);
    const reference = { $ref: `#/components/responses/${name}` };
    const isShorter = among.length > 1 && JSON.stringify(reference).length < text.length;
    if (!isShorter || name in shared) continue;
    shared[name] = JSON.parse(text);
    for (const { operation, status } of among) operation.responses[status] = reference;
  }
  components["responses"] = shared;
}

/** Names a shared response by its users and its status, e.g. `Old410` or `OldHead410`. */
function nameOf(places: readonly Place[]): string {
  const [{ path, method, status }] = places as [Place, ...Place[]];
  const who = places.every(({ operation }) => operation.deprecated)
    ? "Old"
    : places.every((other) => other.path === path)
    ? path.slice(1).replace(/\W.*/, "")
    : "Common";
  return `${who}${method === "head" ? "Head" : ""}${status}`;
}
