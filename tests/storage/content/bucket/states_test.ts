/** HEAD and GET of objects that a store's HEAD would call sound. */

import { assert, assertEquals } from "@std/assert";
import { openScripted, serverOn } from "../../../support/bucket_server.ts";
import { needing } from "../../../support/permissions.ts";
import { ScriptedStore } from "../../../support/scripted_store.ts";
import { ObjectStates, type StateName, STATES } from "../../../support/store_states.ts";

const START = Date.parse("2027-01-01");
const NAMES = Object.keys(STATES) as StateName[];

/** Milliseconds until a request to the store fails. */
const TIMEOUT_MS = 400;

needing("processes")(
  "no HEAD is 200 beside GETs that fail, in whatever state an object is",
  async () => {
    const objects = new ObjectStates([...NAMES]);
    await using fake = new ScriptedStore();
    fake.script = objects.script;
    fake.isPatient = objects.isPatient;
    const settings = { timeoutMs: TIMEOUT_MS };
    const { storage, items, close } = await openScripted(fake, objects.references, settings);
    const clock = { now: START };
    const { send } = serverOn(storage, clock);
    const failed = new Set<StateName>();
    const [SECONDS, PAUSE] = [120, 1.3];
    for (let second = 0; second < SECONDS; second += PAUSE) {
      await Promise.all(items.map(async (item, index) => {
        const name = NAMES[index] as StateName;
        const state: { status: number; isSeenAtFirst?: boolean } = STATES[name];
        const note = `${name} after ${second} s`;
        const first = await send("HEAD", item);
        const isKnown = failed.has(name) || state.isSeenAtFirst === true;
        assertEquals(first.status, isKnown ? state.status : 200, note);
        const get = await send("GET", item);
        if (get.status !== 200 || get.isCutOff) failed.add(name);
        assertEquals(get.isCutOff ? 503 : get.status, state.status, note);
        const last = await send("HEAD", item);
        assertEquals(last.status, state.status, note);
        if (!get.isCutOff) assertEquals(last.answer, get.answer, note);
      }));
      clock.now += PAUSE * 1_000;
    }
    assert(failed.size >= 10, `${failed.size} states`);
    objects.states.fill("sound");
    clock.now += 5_000;
    for (const item of items) {
      for (const method of ["HEAD", "GET"] as const) {
        assertEquals((await send(method, item)).status, 200, "what is mended is served");
      }
    }
    await close();
  },
);
