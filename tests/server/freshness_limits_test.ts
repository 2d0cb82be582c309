import { assert, assertEquals } from "@std/assert";
import type { Field } from "../../lib/http/outcome.ts";
import { limitFreshnessForReuse } from "../../lib/lifecycle/freshness.ts";
import type { RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { FreshnessLimits } from "../../lib/server/freshness_limits.ts";
import { plainHandler } from "../support/handlers.ts";
import { openMemory } from "../support/memory_storage.ts";
import { checkParity, publishTableItems, seen, valueOf } from "./request_table.ts";

const BROWNOUT = Date.parse("2027-03-01T09:00:00Z");
const BROWNOUT_END = Date.parse("2027-03-01T10:00:00Z");
const SUNSET = Date.parse("2027-06-30T12:00:00Z");
const AUDIO = "/audio/:token";
const TAIL = "no-transform, must-revalidate, stale-while-revalidate=0";

const policy = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30T12:00Z",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
  afterSunset: "gone",
});

/** Both sides of each instant at which something changes: status and Cache-Control of an item. */
const CHANGES: [instant: number, status: number, cacheControl: string][] = [
  ...[BROWNOUT, SUNSET].flatMap((change): typeof CHANGES => [
    [change - 301_001, 200, `max-age=300, ${TAIL}`],
    [change - 301_000, 200, `max-age=300, ${TAIL}`],
    [change - 300_999, 200, `max-age=299, ${TAIL}`],
    [change - 300_000, 200, `max-age=299, ${TAIL}`],
    [change - 299_999, 200, `max-age=298, ${TAIL}`],
    [change - 2_000, 200, `max-age=1, ${TAIL}`],
    [change - 1_999, 200, `max-age=0, ${TAIL}`],
    [change - 1, 200, `max-age=0, ${TAIL}`],
    change === SUNSET
      ? [change, 410, "max-age=300, no-transform"]
      : [change, 503, "no-store, no-transform"],
  ]),
  [BROWNOUT_END - 1, 503, "no-store, no-transform"],
  [BROWNOUT_END, 200, `max-age=300, ${TAIL}`],
];

Deno.test("createHandler() sends the Cache-Control of the instant, also if the clock is set back", async () => {
  await using subject = await openMemory();
  const { audio, video } = await publishTableItems(subject);
  let now = 0;
  // Other routes, whose phases end at other instants, answer in between.
  const later = definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30T12:01Z" });
  const policies = { [AUDIO]: policy, "/video/:token": later };
  const config = { cacheMaxAge: 300, policy, policies };
  const handle = plainHandler({ storage: subject.storage, config, clock: () => now, log() {} });
  const send = async (target: string, method: string, headers = {}) =>
    await seen(await handle(new Request(`http://test/${target}`, { method, headers })));
  const forward = CHANGES.toSorted(([one], [other]) => one - other);
  for (const [instant, status, cacheControl] of [...forward, ...forward.toReversed()]) {
    now = instant;
    for (const target of [`audio/${audio.token}`, `video/${video.token}`, "audio/malformed"]) {
      const [head, get] = [await send(target, "HEAD"), await send(target, "GET")];
      const note = `${target} at ${new Date(now).toJSON()}`;
      checkParity(note, head, get);
      if (!target.includes(audio.token)) continue;
      assertEquals([head.status, valueOf(head, "cache-control")], [status, cacheControl], note);
      const [update, updateOfGet] = [
        await send(target, "HEAD", { "If-None-Match": "*" }),
        await send(target, "GET", { "If-None-Match": "*" }),
      ];
      checkParity(`${note}, not modified`, update, updateOfGet);
      assertEquals([update.status, valueOf(update, "cache-control")], [
        status === 200 ? 304 : status,
        cacheControl.replace("max-age=0", "max-age=1"), // nginx would take 0 for what it has stored
      ], note);
    }
  }
});

Deno.test("createHandler() limits freshness by a route's policy of the moment", async () => {
  await using subject = await openMemory();
  const { audio } = await publishTableItems(subject);
  const now = BROWNOUT - 61_000;
  const policies: Record<string, RoutePolicies[string]> = { [AUDIO]: policy };
  const config = { cacheMaxAge: 300, policy, policies };
  const handle = plainHandler({ storage: subject.storage, config, clock: () => now, log() {} });
  const spared = { ...policy, brownouts: [] };
  for (const [current, age] of [[policy, 60], [spared, 300], [policy, 60]] as const) {
    policies[AUDIO] = current;
    for (const method of ["HEAD", "GET"]) {
      const response = await handle(new Request(`http://test/audio/${audio.token}`, { method }));
      await response.body?.cancel();
      assertEquals(response.headers.get("cache-control"), `max-age=${age}, ${TAIL}`);
    }
  }
});

/** Fields of responses, in several orders. */
const FIELDS: Field[][] = [
  [["ETag", '"1"'], ["Cache-Control", "max-age=300"], ["Link", "</>; rel=index"]],
  [["Cache-Control", "max-age=60, stale-while-revalidate=9"], ["ETag", '"2"']],
  [["CDN-Cache-Control", "max-age=300"]],
  [["ETag", '"3"']],
  [["Cache-Control", "max-age=300"], ["Date", new Date(BROWNOUT - 90e3).toUTCString()]],
  [["Cache-Control", "no-store"], ["CDN-Cache-Control", "max-age=90"], ["X-Accel-Expires", "70"]],
  [["Expires", new Date(BROWNOUT).toUTCString()], ["ETag", '"4"'], ["Cache-Control", "public"]],
  [["Edge-Control", "max-age=1d"], ["Cache-Control", "max-age=9;a"], ["X-Accel-Expires", "1d"]],
  [["Expires", new Date(BROWNOUT).toUTCString()], [
    "Date",
    new Date(BROWNOUT - 90e3).toUTCString(),
  ]],
];

Deno.test("limit() returns what limitFreshnessForReuse() does, whatever was asked before", () => {
  const limits = new FreshnessLimits();
  const instants = [400e3, 302e3, 301e3, 71e3, 70e3, 61e3, 2e3, 1e3, 0]
    .flatMap((left) => [-1, 0, 1].map((shift) => BROWNOUT - left + shift));
  const ends = [BROWNOUT, BROWNOUT + 60_000, Infinity];
  for (const now of [...instants, ...instants.toReversed()]) {
    for (const until of ends) {
      for (const fields of FIELDS) {
        for (const method of ["HEAD", "GET", "OPTIONS"]) {
          for (const status of [200, 304, 404, 503]) {
            for (const isAuthorized of [false, true]) {
              const limit = { until, now, method, status, isAuthorized };
              const expected = limitFreshnessForReuse(fields, limit);
              assertEquals(limits.limit(fields, limit), expected, JSON.stringify([limit, fields]));
            }
          }
        }
      }
    }
  }
});

Deno.test("limit() computes nothing anew until something changes", () => {
  const limits = new FreshnessLimits();
  const at = (now: number) => {
    const limit = { until: BROWNOUT, now, method: "HEAD", status: 200, isAuthorized: false };
    const { fields, unchangedUntil } = limits.limit([["Cache-Control", "max-age=300"]], limit);
    return { field: fields[0], unchangedUntil };
  };
  const { field, unchangedUntil } = at(BROWNOUT - 400_000);
  assert(at(unchangedUntil - 1).field === field);
  const next = at(unchangedUntil); // an age shrinks every second
  assertEquals(next.unchangedUntil, unchangedUntil + 1_000);
  assert(at(unchangedUntil + 999).field === next.field);
});
