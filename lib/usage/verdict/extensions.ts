/** The extensions of clients: who has one, until when, and whether the client has called. */

import { extendedPolicy } from "../../lifecycle/extension.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { clientName } from "../record/client_names.ts";
import { runningLast, type Session } from "../record/records.ts";

/** The extension of a client: its own sunset of a route. */
export interface ClientExtension {
  readonly route: string;
  /** The name of the client on record, e.g. `id acme`. */
  readonly client: string;
  /** When it ends, in milliseconds since the epoch. */
  readonly until: number;
}

/** An extension, and what the record has of its client. */
export interface ExtensionUsage extends ClientExtension {
  /** Whether it has ended. */
  readonly isExpired: boolean;
  /** Whether the record has calls by the client to the route. */
  readonly isOnRecord: boolean;
}

/** Lists the extensions that a session announces. */
export function extensionsIn({ extensions = {} }: Session): ClientExtension[] {
  return Object.entries(extensions).flatMap(([route, own]) =>
    Object.entries(own).map(([id, until]) => ({ route, client: clientName("id", id), until }))
  );
}

/**
 * Lists the extensions of each route from the session that began last of those that have mounted it,
 * preferring running servers, as with its policy.
 */
export function announcedExtensions(sessions: readonly Session[]): ClientExtension[] {
  const ordered = runningLast(sessions);
  const announcing = new Map(
    ordered.flatMap((session) => Object.keys(session.policies).map((route) => [route, session])),
  );
  return [...announcing].flatMap(([route, session]) =>
    extensionsIn(session).filter((each) => each.route === route)
  );
}

/** Returns the policies of routes as they apply to a client. */
export function policiesFor(
  client: string,
  policies: RoutePolicies,
  extensions: readonly ClientExtension[],
): RoutePolicies {
  return Object.fromEntries(
    Object.entries(policies).map(([route, policy]) => {
      const own = extensions.find((each) => each.route === route && each.client === client);
      return [route, extendedPolicy(policy, own?.until)];
    }),
  );
}
