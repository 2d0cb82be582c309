/** What the server answers while a hold comes and goes, prepared responses included. */

import { assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { NOON } from "../support/counted_call.ts";
import { servedHandler } from "../support/handlers.ts";
import { openMemory } from "../support/memory_storage.ts";
import { openScene } from "../support/recorder_scene.ts";
import { underPolicy } from "../support/routes.ts";
import { checkParity, sendTo, valueOf } from "./request_table.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** A server at noon on 2027-02-01, whose record is empty. */
async function openServer(settings: Parameters<typeof definePolicy>[0]) {
  const all = new AsyncDisposableStack();
  const scene = all.use(await openScene());
  const subject = all.use(await openMemory());
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
  const config = { cacheMaxAge: 3_600, ...underPolicy(definePolicy(settings)) };
  const clock = () => scene.clocks.here;
  const storage = new CachedStorage(subject.storage, subject.storage.catalogue, clock);
  const onHold = () => storage.generations.end();
  const { recorder, stop } = await scene.start({ policies: config.policies, onHold });
  all.defer(stop);
  const policies = () => recorder.policies;
  const handle = servedHandler({ storage, config, policies, clock, recorder, log() {} });
  return {
    ...scene,
    flush: () => scene.timers.during(recorder.flush()),
    /** Requests the item until responses are prepared, by HEAD and GET. Returns what it got. */
    async ask(kind: "audio" | "video" = "audio") {
      const send = (method: string) => sendTo(handle)(method, `/${kind}/${token}`);
      let last = await send("GET");
      for (const what of ["first", "second", "third"]) {
        checkParity(what, await send("HEAD"), last);
        last = await send("GET");
      }
      const fields = ["sunset", "retry-after", "cache-control"] as const;
      const [sunset, retryAfter, cacheControl = ""] = fields.map((name) => valueOf(last, name));
      return { status: last.status, sunset, retryAfter, age: cacheControl.split(",")[0] };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const until = (minutes: number) => new Date(NOON + minutes * MINUTE).toUTCString();

Deno.test("a brownout is off while a hold lasts, and on again for its rest", async () => {
  await using server = await openServer({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-02-01T11:00Z/PT4H"],
    brownoutStatus: 503,
  });
  const sunset = "Wed, 30 Jun 2027 00:00:00 GMT";
  const refused = { status: 503, sunset, retryAfter: until(180), age: "no-store" };
  const served = (age: number) => {
    return { status: 200, sunset, retryAfter: undefined, age: `max-age=${age}` };
  };
  assertEquals(await server.ask(), refused);
  const hold = { route: undefined, until: NOON + 30 * MINUTE, because: "billing is down" };
  const { id } = await server.ledger.hold(hold);
  assertEquals(await server.ask(), refused, "nobody has told it");
  await server.flush();
  // No cache keeps the response beyond the hold.
  assertEquals(await server.ask(), served(30 * 60 - 1));
  server.sleep(10 * MINUTE);
  assertEquals(await server.ask(), served(20 * 60 - 1));
  server.sleep(20 * MINUTE);
  assertEquals(await server.ask(), refused, "by its own clock");

  const again = await server.ledger.hold({ ...hold, until: NOON + DAY, route: "/video/:token" });
  await server.flush();
  assertEquals(await server.ask(), refused, "it is on another route");
  assertEquals((await server.ask("video")).status, 404, "where no audio is served");
  await server.ledger.release([id, again.id]);
  await server.flush();
  assertEquals((await server.ask("video")).status, 503);
});

Deno.test("a removed path is served while a hold lasts, and its sunset is the hold's end", async () => {
  for (const afterSunset of ["gone", "redirect"] as const) {
    await using server = await openServer({
      deprecatedAt: "2027-01-01",
      sunsetAt: "2027-02-01T12:01Z",
      afterSunset,
    });
    const removed = (sunset: number, age = 3_600) => ({
      status: afterSunset === "gone" ? 410 : 308,
      sunset: until(sunset),
      retryAfter: undefined,
      age: `max-age=${age}`,
    });
    const served = (sunset: number, age: number) => {
      return { ...removed(sunset, age), status: 200 };
    };
    assertEquals(await server.ask(), served(1, 59));
    server.sleep(2 * MINUTE);
    assertEquals(await server.ask(), removed(1));
    const hold = { route: undefined, because: "billing is down" };
    await server.ledger.hold({ ...hold, until: NOON + 10 * MINUTE });
    await server.flush();
    assertEquals(await server.ask(), served(10, 479));
    server.sleep(MINUTE);
    const { id } = await server.ledger.hold({ ...hold, until: NOON + 30 * MINUTE });
    await server.flush();
    assertEquals(await server.ask(), served(30, 27 * 60 - 1));
    await server.ledger.release([id]);
    await server.flush();
    assertEquals(await server.ask(), served(10, 419), "the other one lasts");
    server.sleep(7 * MINUTE);
    assertEquals(await server.ask(), removed(10));
  }
});
