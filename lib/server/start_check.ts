/** `--check`: what a start would do, without doing it. */

import { IN_MEMORY } from "../database/place.ts";
import { DENO_RUNTIME } from "../database/sqlite/deno_runtime.ts";
import { isLasting, NotCreatedError } from "../errors/storage_error.ts";
import { formatInstant } from "../http/timestamp.ts";
import { messageOf } from "../input/printable.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { requireOwner } from "../storage/owner.ts";
import { openStorage } from "../storage/engines/open_storage.ts";
import { holdTexts } from "../usage/output/hold_sentences.ts";
import { policiesUnder, type RecordedHold } from "../usage/record/holds.ts";
import { ledgerPlaceOf, openLedgerToChange } from "../usage/record/open_ledger.ts";
import type { Session } from "../usage/record/records.ts";
import { deletedRoutes } from "../usage/record/upkeep.ts";
import { type Config, readConfig } from "./config.ts";
import { readVariables } from "./environment.ts";
import { printLines } from "./print_lines.ts";
import { listenAddress, reasonOf, requireListenAccess } from "./process.ts";
import { deprecatedPaths, type Route } from "./route.ts";
import { warningsOf } from "./setting_warnings.ts";
import { isRemote, requireStorageAccess } from "./storage_access.ts";
import { placesOf } from "./storage_places.ts";
import { unlikelyDates } from "./unlikely_dates.ts";
import { VERSION } from "./version.ts";
import { urlOf } from "../storage/content/bucket/address.ts";

/**
 * Checks the settings, Deno's permissions and the storage as a start does, and prints what it would
 * announce. Creates and changes nothing.
 *
 * @returns The exit status: 0 if a server would start; 1 if not, after printing every reason.
 */
export async function checkStart(routes: readonly Route[]): Promise<number> {
  const faults: string[] = [];
  /** Runs a step. If it fails as a start would, keeps the reason, and returns `undefined`. */
  const attempt = async <T>(step: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await step();
    } catch (error) {
      faults.push(reasonOf(error));
    }
  };
  const lines: string[] = [];
  const config = await attempt(() => {
    const { get, warnings } = readVariables();
    lines.push(...warnings.map((warning) => `Warning: ${warning}`));
    return readConfig(get, "server", deprecatedPaths(routes));
  });
  if (config !== undefined) {
    await attempt(() => requireListenAccess(config));
    const found = await checkStorage(config, attempt);
    lines.unshift(...announcementOf(config, found));
  }
  const status = await printLines(lines);
  for (const fault of faults) console.error(`media-head cannot start: ${fault}`);
  return faults.length === 0 ? status : 1;
}

type Attempt = <T>(step: () => T | Promise<T>) => Promise<T | undefined>;

/** What is in the database. */
interface Found {
  readonly sessions: readonly Session[];
  readonly holds: readonly RecordedHold[];
  /** What is said of routes that are called, but deleted, or of a record that cannot be read. */
  readonly deleted: readonly string[];
  /** Whether the database exists already. */
  readonly isCreated: boolean;
}

/** Opens what the start opens, for reading. */
async function checkStorage(config: Config, attempt: Attempt): Promise<Found> {
  const { content } = config;
  const hasAccess = await attempt(() => {
    requireStorageAccess(config);
    return true;
  }) ?? false;
  let isCreated = true;
  // Without access to its socket, Deno 2.9.6 connects forever.
  const opened = hasAccess || isRemote(config.database)
    ? await attempt(() =>
      openStorage(config, { mustExist: true }).catch((error) => {
        if (!(error.cause instanceof NotCreatedError)) throw error;
        isCreated = false;
      })
    )
    : undefined;
  // Without a database, content is checked as if the start had just created it.
  const { media, close } = opened ?? await openStorage({ ...config, database: IN_MEMORY }, {});
  await attempt(() => media.catalogue.version());
  const found = opened === undefined
    ? undefined
    : await attempt(() =>
      readLedger(config).catch((error) => {
        if (isLasting(error)) throw error;
        return { sessions: [], holds: [], deleted: [`no record of calls: ${messageOf(error)}`] };
      })
    );
  const { sessions, holds, deleted } = found ?? { sessions: [], holds: [], deleted: [] };
  if (content.kind === "bucket" || content.kind === "folder" && hasAccess) {
    await attempt(async () => {
      const { isCreating } = await media.checkPreparation();
      if (isCreating && content.kind === "folder") await requireOwner(content.path, "CONTENT");
    });
  }
  await close();
  return { sessions, holds, deleted, isCreated };
}

/** Reads the ledger, if there is one, and checks that the server could write to it. */
async function readLedger(
  { database, policies }: Config,
): Promise<Omit<Found, "isCreated"> | undefined> {
  const options = { runtime: () => DENO_RUNTIME };
  const opened = await openLedgerToChange(ledgerPlaceOf(database), options).catch((error) => {
    if (!(error.cause instanceof NotCreatedError)) throw error;
  });
  if (opened === undefined) return undefined;
  const { ledger, checkWriting, close } = opened;
  try {
    await checkWriting();
    const deleted = await deletedRoutes(ledger, Object.keys(policies));
    const { holds } = await ledger.holds();
    return { sessions: await ledger.sessions(), holds, deleted };
  } finally {
    await close();
  }
}

/** Says what a server with these settings would announce, and where its data are. */
function announcementOf(config: Config, found: Found): string[] {
  const { sessions, holds, deleted, isCreated } = found;
  const { host, port } = config;
  const policies = policiesUnder(config.policies, holds);
  const { catalogue, content } = placesOf(config);
  const now = Date.now();
  const warnings = [
    ...warningsOf({ ...config, policies }, now),
    ...unlikelyDates(config.policies, sessions, now),
    ...deleted,
  ];
  return [
    `media-head ${VERSION} with Deno ${Deno.version.deno}, on ${host}:${port}`,
    `Database: ${catalogue}${isCreated ? "" : " (does not exist yet; a start creates it)"}`,
    `Content: ${content}`,
    `Network: --allow-net=${networkOf(config).join()}`,
    ...Object.entries(policies).map(([path, policy]) => `${path}: ${policyText(policy, now)}`),
    ...warnings.map((warning) => `Warning: ${warning}`),
  ];
}

/**
 * Formats a policy, e.g. "deprecated from …; brownout from … to … (503); removed at … (410)", and
 * the holds on it.
 */
function policyText(policy: Policy, now: number): string {
  const { deprecatedAt, sunsetAt, brownouts, afterSunset } = policy;
  const outages = brownouts.map(({ start, end, status }) =>
    `brownout from ${formatInstant(start)} to ${formatInstant(end)} (${status})`
  );
  const removal = sunsetAt === undefined
    ? "no date of removal"
    : `removed at ${formatInstant(sunsetAt)} (${afterSunset === "redirect" ? 308 : 410})`;
  const deprecation = `deprecated from ${formatInstant(deprecatedAt)}`;
  return [deprecation, ...outages, removal, ...holdTexts(policy, now)].join("; ");
}

/**
 * Returns all addresses that a server needs of the network, as Deno's `--allow-net` takes them: where
 * it listens, its database, and its bucket. Deno compares names as they are written, and does not
 * resolve them.
 */
function networkOf(
  { database, content, ...listening }: Pick<Config, "host" | "port" | "database" | "content">,
): string[] {
  const store = content.kind === "bucket" ? urlOf(content, "") : undefined;
  return [
    listenAddress(listening),
    ...database.address === undefined ? [] : [database.address],
    ...store === undefined
      ? []
      : [`${store.hostname}:${store.port || (store.protocol === "https:" ? 443 : 80)}`],
  ];
}
