/**
 * A process that serves a month of traffic on a simulated clock. Arguments: folder, name, first
 * day, days. It prints what it sent as one JSON line per flush, and waits for a line on standard
 * input before each flush but the first.
 */

import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { Recorder } from "../../lib/usage/recorder.ts";
import { altered } from "./ledger_at.ts";
import { openIn } from "./local_storage.ts";
import { servedHandler } from "./handlers.ts";
import { OneItem } from "./one_item.ts";

const [folder = "", name = "", firstDay = "", days = ""] = Deno.args;
const storage = await openIn(folder);
const policy = definePolicy({ deprecatedAt: "2020-01-01" });
const clock = { now: Date.parse(firstDay) };
const now = () => clock.now;
const config = { cacheMaxAge: 300, usageDays: 400, isTelemetryOn: false, policy };
const recorder = new Recorder({
  ledger: altered(storage.ledger, { time: () => Promise.resolve({ now: now(), latest: 0 }) }),
  config,
  routes: [],
  clock: now,
  log: (event) => console.error(event),
});
await recorder.start();
const items = new OneItem(); // only the ledger is shared
const handle = servedHandler({
  storage: items,
  config,
  clock: now,
  log() {},
  meter: recorder.meter,
});
const path = `/audio/${items.item.token}`;

for (let day = 0; day < Number(days); day++) {
  const sent: Record<string, number> = {};
  for (let request = 0; request < 40; request++) {
    const client = `${name}-${(day * 40 + request * 7) % 170}`;
    const headers = { "User-Agent": `${client}/1.0 (test)` };
    await handle(new Request(`http://test${path}`, { method: "HEAD", headers }));
    sent[client] = (sent[client] ?? 0) + 1;
    clock.now += 2_160_000; // forty of them make a day
  }
  console.log(JSON.stringify(sent)); // before the flush: no more than this may be lost
  await recorder.flush();
  console.log("recorded");
}
await recorder.stop();
await storage.close();
