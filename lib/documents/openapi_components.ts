/**
 * Responses that operations have in common, as components of a description.
 */

/** What is read of a description here. */
export interface DescribedPaths {
  readonly paths: Record<string, Record<string, DescribedOperation>>;
  readonly components: Record<string, unknown>;
}

interface DescribedOperation {
  readonly deprecated?: boolean;
  readonly responses: Record<string, unknown>;
}

/** Where a response stands. */
interface Place {
  readonly path: string;
  readonly method: string;
  readonly status: string;
  readonly operation: DescribedOperation;
}

/** Puts each response that stands in several places among the components, and refers to it. */
export function shareResponses({ paths, components }: DescribedPaths): void {
  const places = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      Object.keys(operation.responses).map((status) => ({ path, method, status, operation }))
    )
  );
  const equals = Map.groupBy(
    places,
    ({ operation, status }) => JSON.stringify(operation.responses[status]),
  );
  const shared: Record<string, unknown> = {};
  for (const [text, among] of equals) {
    const name = nameOf(among);
    if (among.length === 1 || name in shared) continue;
    shared[name] = JSON.parse(text);
    for (const { operation, status } of among) {
      operation.responses[status] = { $ref: `#/components/responses/${name}` };
    }
  }
  components["responses"] = shared;
}

/** Who has a response in common, and its status: `Deprecated410`, or `DeprecatedHead410`. */
function nameOf(places: readonly Place[]): string {
  const [{ path, method, status, operation }] = places as [Place, ...Place[]];
  const who = operation.deprecated
    ? "Deprecated"
    : places.some((other) => other.path !== path)
    ? "Common"
    : path.slice(1).replace(/\W.*/, "");
  return `${who}${method === "head" ? "Head" : ""}${status}`;
}
