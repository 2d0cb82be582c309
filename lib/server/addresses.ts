/** The addresses that a server uses. */

import { urlOf } from "../storage/content/bucket/address.ts";
import type { Config } from "./config.ts";
import { listenAddress } from "./process.ts";

/**
 * Returns all addresses that a server needs of the network, as Deno's `--allow-net` takes them: where
 * it listens, its database, and its bucket. Deno compares names as they are written, and does not
 * resolve them.
 */
export function networkOf(
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
