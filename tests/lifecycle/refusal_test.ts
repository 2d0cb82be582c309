import { assert, assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { definePolicy, type PolicySettings } from "../../lib/lifecycle/policy_settings.ts";
import { refusal } from "../../lib/lifecycle/refusal.ts";
import { createHandler } from "../../main.ts";
import { openMemory } from "../support/memory_storage.ts";

const SETTINGS: PolicySettings = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" };
const successor = "/media/1";

/** The Retry-After and the detail in a brownout. */
function retryAfter(settings: Partial<PolicySettings>, at: string, successor?: string) {
  const policy = definePolicy({ ...SETTINGS, ...settings });
  const answer = refusal(policy, { now: Date.parse(at), successor, maxAge: 300 });
  assertEquals(answer?.status, 410);
  const detail = JSON.parse(new TextDecoder().decode(answer?.content as Uint8Array)).detail;
  return [answer?.fields.find(([name]) => name === "Retry-After")?.[1], detail];
}

Deno.test("refusal() names the end of the brownout, unless the removal follows", () => {
  const touching = ["2027-03-01/P1D", "2027-03-02/P1D", "2027-03-04/P1D"];
  const last = ["2027-06-28/P1D", "2027-06-29/P1D"];
  const on = "Wed, 03 Mar 2027 00:00:00 GMT";
  const ahead = "Disabled by a brownout until 2027-03-03T00:00:00Z, ahead of its removal";
  const sunset = "Wed, 30 Jun 2027 00:00:00 GMT";
  const removed = "Disabled by a brownout until 2027-06-30T00:00:00Z, when it is removed";
  const moved = "Disabled by a brownout until 2027-06-30T00:00:00Z, ahead of its removal";
  const redirect = "redirect" as const;
  const rows: [
    settings: Partial<PolicySettings>,
    at: string,
    successor: string | undefined,
    expected: [retryAfter: string | undefined, detail: string],
  ][] = [
    [{ brownouts: touching }, "2027-03-01", successor, [on, ahead]],
    [{ brownouts: touching }, "2027-03-02", successor, [on, ahead]],
    [{ brownouts: last }, "2027-06-28", successor, [undefined, removed]],
    [{ brownouts: last }, "2027-06-29", successor, [undefined, removed]],
    [{ brownouts: last, afterSunset: redirect }, "2027-06-28", successor, [sunset, moved]],
    [{ brownouts: last, afterSunset: redirect }, "2027-06-28", undefined, [undefined, removed]],
  ];
  for (const [settings, at, successor, expected] of rows) {
    assertEquals(retryAfter(settings, at, successor), expected, JSON.stringify([settings, at]));
  }
});

Deno.test("refusals are prepared, in a brownout and after the sunset", async () => {
  await using subject = openMemory();
  for (const afterSunset of ["gone", "redirect"] as const) {
    const policy = definePolicy({ ...SETTINGS, brownouts: ["2027-03-01/P1D"], afterSunset });
    const clock = { now: 0 };
    const config = { cacheMaxAge: 300, policy };
    const now = () => clock.now;
    const handle = createHandler({ storage: subject.storage, config, now, log() {} });
    const head = () => new Request(`http://test/audio/${token}`, { method: "HEAD" });
    const token = newToken();
    for (const at of ["2027-03-01T00:00:00Z", "2027-03-01T23:59:59.999Z", "2027-07-01"]) {
      clock.now = Date.parse(at);
      const first = await handle(head());
      const second = handle(head());
      assert(second instanceof Response, `${at}, ${afterSunset}`); // no promise: it was prepared
      assertEquals([second.status, [...second.headers]], [first.status, [...first.headers]]);
    }
    clock.now = Date.parse("2027-03-02T00:00:00Z"); // the clock is set back
    assertEquals((await handle(head())).status, 404);
  }
});

Deno.test("a refusal in a brownout is not used after it", async () => {
  await using subject = openMemory();
  const policy = definePolicy({ ...SETTINGS, brownouts: ["2027-03-01/P1D"] });
  const clock = { now: Date.parse("2027-03-01T23:59:59.999Z") };
  const config = { cacheMaxAge: 300, policy };
  const handle = createHandler({
    storage: subject.storage,
    config,
    now: () => clock.now,
    log() {},
  });
  const head = new Request(`http://test/audio/${newToken()}`, { method: "HEAD" });
  assertEquals((await handle(head)).status, 410);
  clock.now += 1;
  assertEquals((await handle(head)).status, 404);
});
