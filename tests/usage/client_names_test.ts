import { assert, assertEquals, assertMatch } from "@std/assert";
import fc from "../support/fast_check.ts";
import { ClientNames, clientOf, MAX_NEW_CLIENTS, OTHER } from "../../lib/usage/client_names.ts";
import { HOUR, NOON } from "../support/counted_call.ts";

const once = () => 1;

/** Uses names in turn, and returns those admitted. */
function admitted(names: ClientNames, asked: readonly string[], now: number): string[] {
  for (const name of asked) names.nameFor(name);
  const refused = names.admit(once, now);
  return asked.filter((name) => !refused.has(name));
}

function invented(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

Deno.test("clientOf() returns only the product name of a User-Agent", () => {
  const rows: [userAgent: string | null, client: string][] = [
    [null, "(none)"],
    ["", "(none)"],
    ["Overcast/3.1 (+https://overcast.fm/; iOS podcast app)", "Overcast"],
    ["curl/8.5.0", "curl"],
    ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Mozilla"],
    ["Pocket-Casts", "Pocket-Casts"],
    ["jane@example.com", "jane"],
    ["(Macintosh)", "(other)"],
    [" curl/8", "(other)"],
    ["<script>alert(1)</script>", "(other)"],
    ["\x1b[31mred", "(other)"],
    ["x\x1b[31mred", "x"],
    ["a".repeat(8000), "a".repeat(64)],
    ["Ünïcode/1", "(other)"],
  ];
  for (const [userAgent, client] of rows) assertEquals(clientOf(userAgent), client);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (userAgent) => {
    assertMatch(clientOf(userAgent), /^[!#$%&'*+\-.^_`|~()\w]{1,64}$/);
  }));
});

Deno.test("ClientNames admits a burst of names, then one per minute", () => {
  const names = new ClientNames();
  assertEquals(admitted(names, invented(100, "a"), NOON).length, MAX_NEW_CLIENTS);
  assertEquals(admitted(names, ["b"], NOON + 59_999), []);
  assertEquals(admitted(names, ["b", "c"], NOON + 60_000), ["b"]);
  assertEquals(admitted(names, invented(100, "d"), NOON + 9 * HOUR).length, MAX_NEW_CLIENTS);
  // Known names and placeholders do not use up the allowance.
  assertEquals(admitted(names, [OTHER, "(none)", "a-0"], NOON + 9 * HOUR).length, 3);
});

Deno.test("ClientNames keeps admitting names when the clock is set back", () => {
  const names = new ClientNames();
  admitted(names, invented(30, "a"), NOON);
  assertEquals(admitted(names, invented(100, "b"), NOON - HOUR).length, MAX_NEW_CLIENTS - 30);
  assertEquals(admitted(names, ["c"], NOON - HOUR + 60_000), ["c"]);
});

Deno.test("ClientNames remembers a week's new names, but not any number", () => {
  const names = new ClientNames();
  const week = invented(7 * 24 * 60, "known");
  for (const name of week.slice(0, 9_900)) names.know(name);
  admitted(names, invented(1_000, "invented"), NOON); // no more allowance
  assertEquals(admitted(names, week.slice(0, 9_900), NOON).length, 9_900);
  for (const name of invented(20_000, "later")) names.know(name);
  assertEquals(admitted(names, week.slice(0, 100), NOON), []);
});

Deno.test("ClientNames tracks a bounded number of new names before admission", () => {
  const names = new ClientNames();
  const counted = new Set(invented(10_000, "a").map((name) => names.nameFor(name)));
  assert(counted.size <= 2_001 && counted.has(OTHER), `${counted.size} names`);
});
