import { assertEquals } from "@std/assert";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { picture } from "../../../lib/usage/output/picture.ts";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-12-31",
  brownouts: ["2027-06-02T09:00Z/PT1H"],
});

/** Three days: before the record began, with a brownout, and with calls. */
const DAYS = [
  { day: "2027-06-01", calls: 0, byPhase: {}, isOnRecord: false },
  { day: "2027-06-02", calls: 0, byPhase: {}, isOnRecord: true },
  { day: "2027-06-03", calls: 5, byPhase: { deprecated: 5 }, isOnRecord: true },
];

Deno.test("picture() marks days without calls in any case, and lists them unless it is short", () => {
  const usage = { route: "/a", calls: 5, otherRequests: 0, days: DAYS, clients: [] };
  const marksIn = (html: string) =>
    [...html.matchAll(/<rect class="(unrecorded|brownout)" x="(\d)/g)].map(([, kind, x]) =>
      `${kind} ${x}`
    );
  const listed = (html: string) => [...html.matchAll(/<li>(.*?)<\/li>/g)].length;
  for (const [isShort, lines] of [[false, 3], [true, 1]] as const) {
    const html = picture(usage, POLICY, isShort);
    assertEquals(marksIn(html), ["unrecorded 0", "brownout 1"]);
    assertEquals(listed(html), lines);
    assertEquals(/not fully on record<\/span>/.test(html), true); // in the legend
  }
});
