import { assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { refusal } from "../../lib/lifecycle/refusal.ts";

const documentation = "/why";
const SETTINGS = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30", documentation };

Deno.test("refusal() names the end of the brownout", async () => {
  const brownouts = ["2027-03-01/P1D", "2027-03-02/P1D", "2027-03-04/P1D"]; // two of them touch
  const detail = "Disabled by a brownout until 2027-03-03T00:00:00Z, ahead of its removal";
  for (const [brownoutStatus, expected] of [[undefined, 503], [503, 503], [410, 410]] as const) {
    const policy = definePolicy({ ...SETTINGS, brownouts, brownoutStatus });
    for (const at of ["2027-03-01", "2027-03-02"]) {
      const refused = refusal(policy, { now: Date.parse(at), maxAge: 300 });
      assertEquals(refused?.status, expected);
      const fields = new Headers([...refused?.fields ?? []]);
      assertEquals(fields.get("Retry-After"), "Wed, 03 Mar 2027 00:00:00 GMT");
      assertEquals(fields.get("Cache-Control"), "no-store");
      const problem = await new Response(refused?.body).json();
      assertEquals([problem.status, problem.detail], [expected, detail]);
    }
  }
});

Deno.test("refusal() names the successor and the documentation, and a problem type on request", async () => {
  const policy = definePolicy({ ...SETTINGS, brownouts: ["2027-03-01/P1D"] });
  const rows = [
    ["2027-03-01", 503, "Service Unavailable", "brownout"],
    ["2027-07-01", 410, "Gone", "removed"],
  ] as const;
  for (const [at, status, title, name] of rows) {
    for (const links of [{ documentation }, { successor: "/v2/things", documentation }]) {
      const options = { now: Date.parse(at), maxAge: 300, ...links };
      const { detail: _, ...members } = await new Response(refusal(policy, options)?.body).json();
      assertEquals(members, { title, status, ...links });
      const typed = refusal(policy, { ...options, problemTypesPage: "/types" });
      assertEquals((await new Response(typed?.body).json()).type, `/types#${name}`);
    }
  }
});
