import { assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/input/refused_error.ts";
import { declareRestored } from "../../lib/report/declarations.ts";
import { gapsIn } from "../../lib/report/verdict.ts";
import type { Heartbeat } from "../../lib/storage/ledger/records.ts";
import { openMemoryEngine } from "../support/memory_storage.ts";

const NOON = Date.parse("2027-02-01T12:00:00Z");

/** The time a number of minutes after noon. */
const at = (minutes: number) => NOON + minutes * 60_000;

function heartbeat(server: string, from: number, until: number, more: Partial<Heartbeat> = {}) {
  return { server, policies: {}, from: at(from), until: at(until), sequence: 3, ...more };
}

Deno.test("declareRestored() leaves one gap, and ends the servers of a hot backup", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const now = at(30);
  assertEquals(await declareRestored(ledger, now, now), undefined);
  assertEquals(await ledger.heartbeats(), []);
  const running = heartbeat("running", 0, 9.9);
  const latest = heartbeat("latest", 1, 10);
  const silent = heartbeat("silent", 2, 8);
  const back = [heartbeat("back", 3, 4), heartbeat("back", 9, 9.9)];
  const ahead = heartbeat("ahead", 5, 999);
  await ledger.declare([running, latest, silent, ...back, ahead]);
  assertEquals(await declareRestored(ledger, now, now), { start: at(10), end: now });
  const gone = { end: "gone", declaredAt: now } as const;
  const server = "restored at 2027-02-01T12:30:00.000Z";
  const heartbeats = await ledger.heartbeats();
  assertEquals(heartbeats, [
    { ...running, ...gone },
    { ...latest, ...gone },
    silent,
    back[0],
    ahead,
    { ...back[1], ...gone },
    heartbeat(server, 10, 10, { sequence: 0 }),
    heartbeat(server, 30, 30, { sequence: 0, end: "stopped" }),
  ]);
  const others = heartbeats.filter(({ server }) => server !== "ahead" && server !== "silent");
  const period = { start: at(9.5), end: at(30.5), routes: [] };
  const gaps = gapsIn({ heartbeats: others, keptFrom: undefined }, period, at(31));
  assertEquals(gaps, [
    { reason: "silent", server, reported: at(10), isOver: true, start: at(10), end: now },
  ]);
  await ledger.forget("2027-02-03", at(24 * 60));
  const left = (await ledger.heartbeats()).map(({ server }) => server);
  assertEquals(left, ["silent", "ahead"], "it leaves the record like any other");
});

Deno.test("declareRestored() takes the time of the backup once a server has started", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const copied = heartbeat("copied", 0, 10, { end: "stopped" });
  const started = heartbeat("started", 28, 29.9);
  await ledger.declare([copied, started]);
  const now = at(30);
  await assertRejects(
    () => declareRestored(ledger, now, now),
    RefusedError,
    'server "started" sent',
  );
  await assertRejects(
    () => declareRestored(ledger, now, at(-1)),
    RefusedError,
    "the backup is of 2027-02-01T11:59:00Z, expected a time after the first server registered",
  );
  assertEquals(await declareRestored(ledger, now, at(15)), { start: at(10), end: now });
  const servers = await ledger.heartbeats();
  assertEquals(servers.filter(({ server }) => !server.startsWith("restored")), [copied, started]);
});

Deno.test("declareRestored() ends a server whose heartbeat came just after the time of the backup", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  await ledger.declare([heartbeat("hot", 0, 10.05), heartbeat("started", 28, 29.9)]);
  assertEquals(await declareRestored(ledger, at(30), at(10)), { start: at(10), end: at(30) });
  const [hot] = await ledger.heartbeats();
  assertEquals(hot?.end, "gone");
});
