import { assert, assertEquals, assertMatch } from "@std/assert";
import { inspect } from "../../lib/lifecycle/checking/inspect.ts";
import type { AfterSunset, Policy, RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { newToken } from "../../lib/storage/token.ts";
import { servedHandler } from "../support/handlers.ts";
import type { MediaSubject } from "../support/media_subject.ts";
import { openMemory } from "../support/memory_storage.ts";
import { underPolicy } from "../support/routes.ts";
import {
  checkParity,
  checkProblem,
  publishTableItems,
  type Seen,
  seen,
  sendTo,
  valueOf as field,
} from "./request_table.ts";

const at = (text: string) => Date.parse(text);

/** The server on storage, under policies, by a clock. */
function serverOn(
  { storage }: MediaSubject,
  policies: ReturnType<typeof underPolicy>,
  clock: () => number,
) {
  const cached = new CachedStorage(storage, storage.catalogue, clock);
  const config = { cacheMaxAge: 300, ...policies };
  return servedHandler({ storage: cached, config, clock, log() {} });
}

const SETTINGS = {
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30T12:00Z",
  brownouts: ["2027-03-01T09:00Z/PT1H", "2027-05-03T09:00Z/PT8H"],
  brownoutStatus: 503,
  documentation: "/deprecation",
} as const;

type Phase = "announced" | "deprecated" | "brownout" | "removed";

/** Instants around every change of phase, each with its phase and the phase's end. */
const INSTANTS: [instant: string, phase: Phase, until: string | undefined][] = [
  ["2026-12-31T23:59:59Z", "announced", "2027-01-01T00:00:00Z"],
  ["2027-01-01T00:00:00Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2027-03-01T08:54:58.999Z", "deprecated", "2027-03-01T09:00:00Z"], // fresh for 300 seconds
  ["2027-03-01T08:54:59Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2027-03-01T08:54:59.001Z", "deprecated", "2027-03-01T09:00:00Z"], // for 299
  ["2027-03-01T08:57:00Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2027-03-01T08:59:58Z", "deprecated", "2027-03-01T09:00:00Z"], // for one
  ["2027-03-01T08:59:58.001Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2027-03-01T08:59:59.999Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2027-03-01T09:00:00Z", "brownout", "2027-03-01T10:00:00Z"],
  ["2027-03-01T09:59:59Z", "brownout", "2027-03-01T10:00:00Z"],
  ["2027-03-01T10:00:00Z", "deprecated", "2027-05-03T09:00:00Z"],
  ["2027-05-03T08:59:59Z", "deprecated", "2027-05-03T09:00:00Z"],
  ["2027-05-03T09:00:01Z", "brownout", "2027-05-03T17:00:00Z"],
  ["2027-05-03T17:00:00Z", "deprecated", "2027-06-30T12:00:00Z"],
  ["2027-06-30T11:54:59.001Z", "deprecated", "2027-06-30T12:00:00Z"],
  ["2027-06-30T11:59:59Z", "deprecated", "2027-06-30T12:00:00Z"],
  ["2027-06-30T12:00:00Z", "removed", undefined],
  ["2027-06-30T11:59:57Z", "deprecated", "2027-06-30T12:00:00Z"], // the clock is set back
  ["2027-03-01T09:30:00Z", "brownout", "2027-03-01T10:00:00Z"],
  ["2027-03-01T08:57:00Z", "deprecated", "2027-03-01T09:00:00Z"],
  ["2030-01-01T00:00:00Z", "removed", undefined],
];

Deno.test("every phase answers correctly, on every route, with every outcome", async (t) => {
  await using subject = await openMemory();
  const items = await publishTableItems(subject);
  const { audio, video, linkedAudio, linkedVideo, unpublished, missing } = items;
  const unknown = newToken();
  const condition = { "If-None-Match": `"${audio.digest}"` };
  const outcomes: [target: string, fields: Record<string, string>, status: number][] = [
    [`audio/${audio.token}`, {}, 200],
    [`audio/${audio.token.toUpperCase()}`, {}, 200],
    [`video/${video.token}`, {}, 200],
    [`audio/${audio.token}`, condition, 304],
    [`audio/${audio.token}`, { "If-Match": '"other"' }, 412],
    [`audio/${linkedAudio.token}`, {}, 307],
    [`audio/${linkedAudio.token}`, { ...condition, Range: "bytes=0-1" }, 307],
    [`video/${linkedVideo.token.toUpperCase()}`, { "If-Match": '"other"' }, 307],
    [`audio/${unknown}`, {}, 404],
    [`audio/${video.token}`, {}, 404],
    [`audio/${unpublished}`, {}, 410],
    [`audio/${missing}`, {}, 503],
    ["audio/malformed", {}, 400],
    ["video/malformed", condition, 400],
    [`media/${audio.token}`, {}, 200],
    [`media/${linkedVideo.token}`, {}, 307],
    [`media/${unknown}`, {}, 404],
    ["media/malformed", {}, 400],
  ];

  for (const afterSunset of ["gone", "redirect"] as const) {
    const policy = definePolicy({ ...SETTINGS, afterSunset });
    // One handler answers all requests. Some instants are in one generation of lookups, so that
    // only the phase ends what was prepared.
    let instant = "";
    const now = () => at(instant);
    const handle = serverOn(subject, underPolicy(policy), now);
    for (const [next, phase, until] of INSTANTS) {
      instant = next;
      await t.step(`${instant}, ${phase}, then ${afterSunset}`, async () => {
        const thrice = [...outcomes, ...outcomes, ...outcomes];
        for (const [index, [target, fields, status]] of thrice.entries()) {
          const isThird = index >= 2 * outcomes.length;
          const send = async (method: string) => {
            const request = new Request(`http://test/${target}`, { method, headers: fields });
            const response = handle(request);
            // A fault is never prepared; a refusal looks nothing up, so it meets none.
            const isFault = target.includes(missing) &&
              (phase === "announced" || phase === "deprecated");
            if (method === "HEAD" && isThird && !isFault) {
              assert(response instanceof Response, `${target} is not prepared`);
            }
            return await seen(await response);
          };
          const [get, head] = [await send("GET"), await send("HEAD")];
          const note = `${target} ${JSON.stringify(fields)}`;
          checkParity(note, head, get);
          const headers = new Headers(Object.fromEntries(get.fields));
          const response = { status: get.status, headers, url: "http://test/" };
          assertEquals(inspect(response, { now: now() }).faults, [], note);
          const token = target.slice("audio/".length).toLowerCase();
          const link = [linkedAudio, linkedVideo].find((item) => item.token === token);
          const location = status === 307 ? link?.location : undefined;
          if (target.startsWith("media/")) {
            assertEquals([get.status, field(get, "location")], [status, location], note);
            for (const name of ["deprecation", "sunset", "link"]) {
              assert(!get.fields.some(([other]) => other === name), `${note}: ${name}`);
            }
            if (get.status < 400) {
              assertEquals(field(get, "cache-control"), "max-age=300, no-transform");
            }
            continue;
          }
          const successor = token === "malformed" ? undefined : `/media/${token}`;
          const name = phase === "brownout" || phase === "removed" ? phase : "unpublished";
          if (get.status === 410 || phase === "brownout") checkProblem(note, get, name);
          const isLost = get.status === 410 && name === "unpublished" ||
            get.status === 404 && token === unknown; // as a lookup found: nothing replaces it
          checkAnnouncement(get, isLost ? undefined : successor, note);
          const answer = { status, location, successor };
          checkPhase(get, { phase, until, now: at(instant), afterSunset, ...answer }, note);
        }
      });
    }
  }
});

Deno.test("a route with its own policy answers as if all had it, and the others as before", async () => {
  await using subject = await openMemory();
  const { audio, video, unpublished, missing } = await publishTableItems(subject);
  const common = definePolicy(SETTINGS);
  const own = definePolicy({
    deprecatedAt: "2027-02-01",
    sunsetAt: "2027-12-31",
    brownouts: ["2027-06-30T11:30Z/PT1H"],
    documentation: "/deprecation",
  });
  let now = 0;
  const handlerOf = (policy: Policy, own: RoutePolicies = {}) =>
    serverOn(subject, underPolicy(policy, own), () => now);
  const staggered = handlerOf(common, { "/video/:token": own });
  const [all, others] = [handlerOf(own), handlerOf(common)];
  const boundaries = [common, own].flatMap(({ deprecatedAt, sunsetAt = 0, brownouts }) => [
    ...[deprecatedAt, sunsetAt],
    ...brownouts.flatMap(({ start, end }) => [start, end]),
  ]);
  const tokens = [audio.token, video.token, unpublished, missing, newToken(), "malformed"];
  const targets = ["audio", "video", "media"].flatMap((path) =>
    tokens.flatMap((token) => ["GET", "HEAD", "OPTIONS"].map((method) => ({ path, token, method })))
  );
  for (now of boundaries.flatMap((at) => [at - 1000, at - 1, at]).toSorted()) {
    for (const { path, token, method } of targets) {
      const send = async (handle: typeof all) => {
        const { content, ...rest } = await sendTo(handle)(method, `/${path}/${token}`);
        return rest.status < 500 ? { ...rest, content } : rest; // a fault names its occurrence
      };
      const expected = await send(path === "video" ? all : others);
      const note = `${method} /${path}/${token} at ${new Date(now).toJSON()}`;
      assertEquals(await send(staggered), expected, note);
    }
    const notice = await staggered(new Request("http://test/deprecation"));
    const next = Math.min(...boundaries.filter((boundary) => boundary > now));
    const left = Math.min(300, Math.max(0, Math.floor((next - 1000 - now) / 1000)));
    assertMatch(notice.headers.get("cache-control") ?? "", new RegExp(`^max-age=${left}(,|$)`));
  }
});

Deno.test("the notice's freshness depends on the policies that routes have, not on the common one", async () => {
  await using subject = await openMemory();
  const policy = definePolicy(SETTINGS);
  const own = definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-12-31" });
  const policies = { "/audio/:token": own, "/video/:token": own };
  let now = at("2027-06-30T11:59:00Z"); // a minute before the common sunset
  const handle = serverOn(subject, { policy, policies }, () => now);
  const getNotice = async () => {
    const headers = { Accept: "application/json" };
    const response = await handle(new Request("http://test/deprecation", { headers }));
    const { phase, sunsetAt } = await response.json();
    // Its top level speaks of routes that exist, and none has the common policy.
    assertEquals([phase, sunsetAt], ["deprecated", "2027-12-31T00:00:00Z"]);
    return response.headers.get("cache-control");
  };
  const strict = "no-transform, must-revalidate, stale-while-revalidate=0";
  assertEquals(await getNotice(), `max-age=300, ${strict}`);
  now = at("2027-12-30T23:59:00Z"); // a minute before their sunset
  assertEquals(await getNotice(), `max-age=59, ${strict}`);
});

interface ExpectedPhase {
  phase: Phase;
  until: string | undefined;
  now: number;
  /** Outside brownouts and before the sunset. */
  status: number;
  location: string | undefined;
  afterSunset: AfterSunset;
  successor: string | undefined;
}

function checkPhase(get: Seen, expected: ExpectedPhase, note: string): void {
  const { phase, until, now, afterSunset, successor } = expected;
  const cacheControl = field(get, "cache-control");
  const retryAfter = field(get, "retry-after");
  const location = field(get, "location");
  if (phase === "brownout") {
    assertEquals([get.status, cacheControl], [503, "no-store, no-transform"], note);
    assertEquals(at(retryAfter ?? ""), at(until ?? ""), note);
    return;
  }
  if (phase === "removed") {
    const isRedirect = afterSunset === "redirect" && successor !== undefined;
    assertEquals([get.status, location], isRedirect ? [308, successor] : [410, undefined], note);
    const kept = isRedirect ? "max-age=300" : "max-age=300, no-transform";
    assertEquals([cacheControl, retryAfter], [kept, undefined], note);
    return;
  }
  const { status } = expected;
  assertEquals([get.status, location], [status, expected.location], note);
  if (status >= 400) return assertEquals(cacheControl, "no-store, no-transform", note);
  const left = Math.floor((at(until ?? "") - now) / 1000);
  const least = status === 304 ? 1 : 0; // nginx obeys no shorter lifetime in a 304
  const maxAge = Math.min(300, Math.max(least, left - 1)); // a second for transit
  const limited = `max-age=${maxAge}, no-transform, must-revalidate, stale-while-revalidate=0`;
  assertEquals(cacheControl, limited, note);
}

/** The fields of RFC 9745, 8594 and 8288. */
function checkAnnouncement(get: Seen, successor: string | undefined, note: string): void {
  assertEquals(field(get, "deprecation"), `@${at("2027-01-01T00:00:00Z") / 1000}`, note);
  assertEquals(field(get, "sunset"), "Wed, 30 Jun 2027 12:00:00 GMT", note);
  const links = successor === undefined ? [] : [`<${successor}>; rel="successor-version"`];
  links.push('</deprecation>; rel="deprecation"', '</deprecation>; rel="sunset"');
  assertEquals(field(get, "link"), links.join(", "), note);
}
