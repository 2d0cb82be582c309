/**
 * A process that repeatedly publishes the same content and unpublishes it at once, while others do
 * the same. It fails if an item lacks its content. Argument: the number of rounds.
 */

import { assertRejects } from "@std/assert";
import { readConfig } from "../../lib/server/config.ts";
import { TokenTakenError } from "../../lib/storage/catalogue/catalogue.ts";
import { openStorage } from "../../lib/storage/media/open_storage.ts";
import { sourceOf } from "./body.ts";
import { newMetadata } from "../storage/storage_suite.ts";

const RACED = "content that two publish at once";

const storage = await openStorage(readConfig((name) => Deno.env.get(name), "command"), {});
for (let round = Number(Deno.args[0]); round > 0; round--) {
  await using staged = await storage.stage(sourceOf(new TextEncoder().encode(RACED)));
  const item = await storage.publish(newMetadata(), staged);
  const text = await new Response(await storage.open(item)).text();
  if (text !== RACED) throw new Error(`The content is "${text}"`);
  await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
  await storage.unpublish(item.token, Date.now());
  // What fails removes its content, unless the other process uses it.
  await using refused = await storage.stage(sourceOf(new TextEncoder().encode(RACED)));
  const failing = storage.publish({ ...newMetadata(), token: item.token }, refused);
  await assertRejects(() => failing, TokenTakenError);
}
await storage.close();
