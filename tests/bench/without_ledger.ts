/**
 * The server without its ledger, to measure what the ledger costs.
 */

import { readConfig } from "../../lib/config.ts";
import { cached } from "../../lib/storage/cache.ts";
import { LocalStorage } from "../../lib/storage/local.ts";
import { createHandler } from "../../main.ts";

const config = readConfig((name) => Deno.env.get(name));
const now = Date.now;
const storage = cached(await LocalStorage.open(config), { ttl: config.cacheTtl, now });
const handle = createHandler({ storage, config, now, log() {} });

Deno.serve({
  hostname: config.host,
  port: config.port,
  automaticCompression: false,
  onListen: ({ port }) => console.error(JSON.stringify({ port })),
}, handle);
