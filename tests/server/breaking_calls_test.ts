/** Which calls of the deprecated routes count as broken by the removal. */

import { assertEquals } from "@std/assert";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy, type PolicySettings } from "../../lib/lifecycle/policy_settings.ts";
import { ReplacedError, UnpublishedError } from "../../lib/storage/errors.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { UsageMeter } from "../../lib/usage/record/meter.ts";
import { NOON } from "../support/counted_call.ts";
import { plainHandler } from "../support/handlers.ts";
import { fails, OneItem } from "../support/one_item.ts";
import { underPolicy } from "../support/routes.ts";
import { sendTo } from "./request_table.ts";

const TOKEN = newToken();
const LINK = `https://there.test/${TOKEN}`;

function policyWith(settings: Partial<PolicySettings> = {}): Policy {
  const answers = { brownoutStatus: 503, afterSunset: "gone" } as const;
  return definePolicy({ deprecatedAt: "2027-01-01", ...answers, ...settings });
}

/** In each, the phase at noon is its name. */
const DEPRECATED = policyWith();
const ANNOUNCED = policyWith({ deprecatedAt: "2027-03-01" });
const BROWNOUT = policyWith({
  brownouts: ["2027-02-01T11:00Z/PT2H"],
  sunsetAt: "2027-06-01",
});
const REMOVED = policyWith({ sunsetAt: "2027-02-01" });
const GONE_BROWNOUT = policyWith({
  brownouts: ["2027-02-01T11:00Z/PT2H=410"],
  sunsetAt: "2027-06-01",
});
const REDIRECTED: Policy = { ...REMOVED, afterSunset: "redirect" };
/** Fails as soon as the response in the brownout is chosen. */
const BROKEN_BROWNOUT: Policy = {
  ...BROWNOUT,
  brownouts: BROWNOUT.brownouts.map((brownout) => ({
    ...brownout,
    get status(): never {
      throw new Error("a bug");
    },
  })),
};

interface Call {
  /** If left out, HEAD and GET are each sent. */
  readonly method?: string;
  readonly target?: string;
  readonly fields?: Record<string, string>;
  readonly policy?: Policy;
  readonly storage?: OneItem;
}

/** Storage whose item has content. */
const withContent = () => new OneItem({ open: () => Promise.resolve(new Uint8Array(1_000)) });
const GET: Call = { method: "GET" };
const POST: Call = { method: "POST" };
const OPTIONS: Call = { method: "OPTIONS" };
const MALFORMED: Call = { target: "/audio/malformed" };
const BAD_HOST: Call = { fields: { Host: "a b" } };

/** A call whose lookup has a result. */
function found(result: LookupResult): Call {
  return { storage: Object.assign(new OneItem(), { result }) };
}

/** A call whose lookup fails. */
function failed(error: Error): Call {
  return { storage: new OneItem({ find: fails(error) }) };
}

const ITEM = { token: TOKEN, kind: "audio", location: LINK, publishedAt: NOON } as const;
const LINKED = found({ state: "linked", kind: "audio", item: ITEM });
const UNKNOWN = found({ state: "unknown" });
const UNPUBLISHED = found({ state: "unpublished", kind: "audio", unpublishedAt: NOON });

/** A call, its status, and the impact under which it is counted, if it is. */
type Row = [call: Call, status: number, impact: "breaking" | "none" | undefined];

/** Each is a call of an item while the route is deprecated, with changes. */
const ROWS: readonly Row[] = [
  [{}, 200, "breaking"],
  [{ target: `/audio/${TOKEN.toUpperCase()}` }, 200, "breaking"],
  [{ ...GET, fields: { Range: "bytes=0-999" } }, 206, "breaking"],
  [{ ...GET, fields: { Range: "bytes=1000-" } }, 416, "breaking"],
  [{ fields: { "If-None-Match": "*" } }, 304, "breaking"],
  [{ fields: { "If-Match": '"other"' } }, 412, "breaking"],
  [LINKED, 307, "breaking"],
  [failed(new TypeError("a bug")), 500, "breaking"],
  [failed(new ReplacedError("s3", "replaced")), 502, "breaking"],
  [failed(new StorageError("s3", "down")), 503, "breaking"],
  [UNKNOWN, 404, "none"],
  [{ target: `/video/${TOKEN}` }, 404, "none"],
  [UNPUBLISHED, 410, "none"],
  [{ ...GET, storage: new OneItem({ open: fails(new UnpublishedError("gone")) }) }, 410, "none"],
  [MALFORMED, 400, "none"],
  [POST, 405, "none"],
  [OPTIONS, 204, "none"],
  [{ ...OPTIONS, ...MALFORMED }, 204, "none"],

  [{ policy: ANNOUNCED }, 200, "breaking"],
  [{ policy: ANNOUNCED, ...UNKNOWN }, 404, "none"],

  // In a brownout, nothing is looked up.
  [{ policy: BROWNOUT }, 503, "breaking"],
  [{ policy: BROWNOUT, ...UNKNOWN }, 503, "breaking"],
  [{ policy: BROWNOUT, ...MALFORMED }, 503, "none"],
  [{ policy: BROWNOUT, ...POST }, 405, "none"],
  [{ policy: BROWNOUT, ...OPTIONS }, 204, "none"],
  [{ policy: GONE_BROWNOUT }, 410, "breaking"],
  [{ policy: GONE_BROWNOUT, ...MALFORMED }, 410, "none"],
  [{ policy: BROKEN_BROWNOUT }, 500, "breaking"],
  [{ policy: BROKEN_BROWNOUT, ...MALFORMED }, 500, "none"],
  [{ policy: BROKEN_BROWNOUT, ...POST }, 405, "none"],

  // Nor after the removal.
  [{ policy: REMOVED }, 410, "breaking"],
  [{ policy: REMOVED, ...UNPUBLISHED }, 410, "breaking"],
  [{ policy: REMOVED, ...MALFORMED }, 410, "none"],
  [{ policy: REMOVED, ...POST }, 405, "none"],
  [{ policy: REMOVED, ...OPTIONS }, 204, "none"],
  [{ policy: REDIRECTED }, 308, "breaking"],
  [{ policy: REDIRECTED, ...MALFORMED }, 410, "none"],

  // No deprecated route was called.
  ...[DEPRECATED, BROWNOUT, REMOVED].flatMap((policy): Row[] => [
    [{ policy, ...BAD_HOST }, 400, undefined],
    [{ policy, target: `/media/${TOKEN}` }, 200, undefined],
    [{ policy, target: "/nowhere" }, 404, undefined],
  ]),
];

Deno.test("createHandler() counts as breaking exactly the calls that the removal breaks", async () => {
  const sent = ROWS.flatMap(([{ method, ...call }, ...expected], index) =>
    (method === undefined ? ["HEAD", "GET"] : [method]).map((method) =>
      [`row ${index}: ${method}`, method, call, ...expected] as const
    )
  );
  for (const [note, method, call, status, impact] of sent) {
    const { target = `/audio/${TOKEN}`, fields = {}, policy = DEPRECATED } = call;
    const meter = new UsageMeter();
    const handle = plainHandler({
      storage: call.storage ?? withContent(),
      config: { cacheMaxAge: 300, ...underPolicy(policy) },
      clock: () => NOON,
      log() {},
      recorder: { meter, fault: undefined },
    });
    const answer = await sendTo(handle)(method, target, fields);
    const counted = meter.take(NOON).map(({ impact, calls }) => [impact, calls]);
    const expected = impact === undefined ? [] : [[impact, 1]];
    assertEquals([answer.status, counted], [status, expected], note);
  }
});
