/**
 * A process that repeatedly publishes the same content and unpublishes it at once, while others do
 * the same. It fails if an item lacks its content. Argument: the number of rounds.
 */

import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import { readConfig } from "../../lib/server/config.ts";
import { newMetadata } from "../storage/storage_suite.ts";

/** The content that all of them publish. */
export const RACED = new TextEncoder().encode("content that two publish at once");

if (import.meta.main) {
  const { content: place, engine: name, databaseUrl } = readConfig(
    (name) => Deno.env.get(name),
    "command",
  );
  const { openEngine } = name === "postgres"
    ? await import("../../lib/storage/database/postgres/engine.ts")
    : await import("../../lib/storage/database/sqlite/engine.ts");
  if (place.kind !== "bucket") throw new TypeError("CONTENT is not a bucket");
  const engine = await openEngine(databaseUrl);
  const storage = new MediaStorage(engine, new BucketContent(place, engine));
  const read = async function* () {
    yield await Promise.resolve(RACED);
  };
  for (let round = Number(Deno.args[0]); round > 0; round--) {
    await using staged = await storage.stage({ read });
    const item = await storage.publish(newMetadata(), staged);
    const text = await new Response(await storage.open(item)).text();
    if (text !== new TextDecoder().decode(RACED)) throw new Error(`The content is "${text}"`);
    await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
    await storage.unpublish(item.token, Date.now());
  }
  await storage.close();
}
