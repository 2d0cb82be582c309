import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { RecentMap } from "../lib/recent_map.ts";

Deno.test("RecentMap keeps the most recent half, and no more than it may", () => {
  const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(30)), { maxLength: 200, size: "max" });
  fc.assert(fc.property(fc.integer({ min: 2, max: 20 }), steps, (max, steps) => {
    const map = new RecentMap<number, object>(max);
    const values = new Map<number, object>();
    let recent: number[] = []; // the latest first
    for (const [isSet, key] of steps) {
      if (isSet) {
        const value = {};
        values.set(key, value);
        map.set(key, value);
      }
      const found = map.get(key);
      if (recent.slice(0, Math.floor(max / 2)).includes(key)) assert(found !== undefined);
      if (isSet || found !== undefined) {
        assert(found === values.get(key)); // the last value, or none
        recent = [key, ...recent.filter((other) => other !== key)];
      }
    }
  }));
});

Deno.test("RecentMap is bounded", () => {
  const map = new RecentMap<number, number>(100);
  for (let key = 0; key < 10_000; key++) map.set(key, key);
  const kept = Array.from({ length: 10_000 }, (_, key) => key)
    .toReversed().filter((key) => map.get(key) !== undefined);
  assert(kept.length >= 50 && kept.length <= 100, `${kept.length} kept`);
});

Deno.test("RecentMap forgets what it is told to", () => {
  const map = new RecentMap<string, number>(4);
  for (const [index, key] of ["a", "b", "c"].entries()) map.set(key, index);
  map.delete("a"); // by now among the older
  map.delete("c");
  assertEquals([map.get("a"), map.get("b"), map.get("c")], [undefined, 1, undefined]);
  map.clear();
  assertEquals(map.get("b"), undefined);
});
