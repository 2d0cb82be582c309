/**
 * Client names for counting. Clients can send any name and any release, so only a limited number of
 * new ones get their own rows each day.
 */

import {
  IDENTIFYING,
  NO_USER_AGENT,
  OTHER,
  type Product,
  productOf,
} from "../../lifecycle/user_agent.ts";
import { CHECK_CLIENT } from "../../lifecycle/breaking.ts";

/** The kinds of clients. The name of a client begins with its kind, e.g. `app curl`. */
export const CLIENT_KINDS = ["app", "id", "site"] as const;

type ClientKind = typeof CLIENT_KINDS[number];

/** Returns the name of a client that has a kind. */
export function clientName(kind: ClientKind, bareName: string): string {
  return `${kind} ${bareName}`;
}

/** Returns the kind of a client; `undefined` if it has none, e.g. `(other)`. */
export function clientKindOf(client: string): ClientKind | undefined {
  return CLIENT_KINDS.find((kind) => client.startsWith(clientName(kind, "")));
}

/** Returns the name of a client without its kind. */
export function bareNameOf(client: string): string {
  const kind = clientKindOf(client);
  return kind === undefined ? client : client.slice(clientName(kind, "").length);
}

/** New names that one server admits per UTC day: 182,500 a year if it is never restarted. */
export const MAX_NEW_NAMES_A_DAY = 500;

/** Releases of one client that one server admits per UTC day. */
export const MAX_RELEASES_OF_CLIENT = 20;

/** Releases of all clients together that one server admits per UTC day. */
export const MAX_RELEASES = 2_000;

/** Names of probes that one server admits per UTC day. */
export const MAX_PROBES_A_DAY = 20;

/** The field in which the gate's probe sends its name. */
export const PROBE_FIELD = "lifecycle-probe";

/** The prefix of the names of probes. Requests by probes are no calls. */
export const PROBE_PREFIX = "probe ";

/** The name for probes beyond the limit, and for requests with any other value in the field. */
export const OTHER_PROBES = `${PROBE_PREFIX}${OTHER}`;

/** Matches the name of a probe. */
const PROBE_NAME = /^[\da-f]{16}$/;

/** The name for requests of the library's `lifecycle check`, which count as a probe's, too. */
const CHECKS = `${PROBE_PREFIX}${CHECK_CLIENT}`;

/**
 * Matches an id of the operator's or the application's, e.g. a consumer's that a gateway adds. Any other
 * counts as "(other)".
 */
const ID = /^[!-~](?:[ -~]{0,62}[!-~])?$/;

/** Captures the DNS name in an Origin or Referer (RFC 6454, RFC 9110 §10.1.3), and no path. */
const SITE = /^https?:\/\/((?=[a-z0-9.-]*[a-z])[a-z0-9.-]{1,75})(?::\d+)?(?:\/|$)/i;

/**
 * Returns the client that sent a request: "probe …" for a probe, "id …" if it has an id, "site …"
 * for a browser, or "app …" from User-Agent. Only an id can put an address or token into the name.
 *
 * @param id The client's id, from the operator's field or the application, if it has one.
 * @returns The name and release of an app. For any other client, its name, and the app's name in
 *   place of a release.
 */
export function callerOf(fields: Headers, id: string | undefined): Product {
  const probe = fields.get(PROBE_FIELD);
  if (probe !== null) {
    return { name: PROBE_NAME.test(probe) ? `${PROBE_PREFIX}${probe}` : OTHER_PROBES };
  }
  const userAgent = fields.get("user-agent");
  if (userAgent === CHECK_CLIENT) return { name: CHECKS };
  if (id !== undefined) {
    return ID.test(id) ? { name: clientName("id", id), release: appIn(userAgent) } : OTHER_CLIENT;
  }
  if (userAgent?.startsWith("Mozilla/")) { // a browser
    const site = siteOf(fields.get("origin")) ?? siteOf(fields.get("referer"));
    if (site === OTHER) return OTHER_CLIENT;
    if (site !== undefined) return { name: site, release: appIn(userAgent) };
  }
  return appOf(productOf(userAgent));
}

/** Returns whether a request is no call, because a gate's probe or `lifecycle check` sent it. */
export function isProbe(fields: Headers): boolean {
  return fields.has(PROBE_FIELD) || fields.get("user-agent") === CHECK_CLIENT;
}

const OTHER_CLIENT: Product = { name: OTHER };

function appIn(userAgent: string | null): string | undefined {
  const { name } = productOf(userAgent);
  return name === NO_USER_AGENT || name === OTHER ? undefined : name;
}

/** The clients of recent products. Looking one up is cheaper than building its name again. */
const apps = new WeakMap<Product, Product>();

function appOf(product: Product): Product {
  if (product.name === NO_USER_AGENT || product.name === OTHER) return product;
  const app = apps.get(product) ?? { ...product, name: clientName("app", product.name) };
  apps.set(product, app);
  return app;
}

function siteOf(url: string | null): string | undefined {
  const site = SITE.exec(url ?? "")?.[1]?.toLowerCase();
  return site === undefined ? undefined : IDENTIFYING.test(site) ? OTHER : clientName("site", site);
}

/**
 * The names of clients and probes, and the releases of clients, that one server counts separately.
 * They are admitted first come, first served.
 */
export class ClientNames {
  readonly #known = new Set([NO_USER_AGENT, OTHER, OTHER_PROBES, CHECKS]);
  #day: string | undefined;
  /** The number of names admitted on that day. */
  #newNames = 0;
  readonly #releasesOf = new Map<string, Set<string>>();
  #releases = 0;
  readonly #probes = new Set<string>();

  /** Marks a name as known, so that its calls keep their own rows. */
  know(name: string): void {
    this.#known.add(name);
  }

  /** Resets the limits if the day has changed. */
  beginDay(day: string): void {
    if (this.#day !== undefined && day !== this.#day) {
      this.#newNames = 0;
      this.#releasesOf.clear();
      this.#releases = 0;
      this.#probes.clear();
    }
    this.#day = day;
  }

  /** Returns the name to count a call under. */
  nameFor(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#newNames >= MAX_NEW_NAMES_A_DAY) return OTHER;
    this.#newNames++;
    this.know(name);
    return name;
  }

  /** Returns the release to count a call under; empty without one, and beyond the limits. */
  releaseFor(client: string, release = ""): string {
    if (release === "") return "";
    const releases = this.#releasesOf.get(client) ?? new Set();
    if (releases.has(release)) return release;
    if (releases.size >= MAX_RELEASES_OF_CLIENT || this.#releases >= MAX_RELEASES) return "";
    this.#releases++;
    this.#releasesOf.set(client, releases.add(release));
    return release;
  }

  /** Returns the name to count a probe's request under. */
  probeFor(name: string): string {
    if (this.#known.has(name) || this.#probes.has(name)) return name;
    if (this.#probes.size >= MAX_PROBES_A_DAY) return OTHER_PROBES;
    this.#probes.add(name);
    return name;
  }
}
