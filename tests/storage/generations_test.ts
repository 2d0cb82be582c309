import { assertEquals } from "@std/assert";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { Generations, type Versioned } from "../../lib/storage/generations.ts";

const TTL = 100;
const DOWN = new StorageError("test", "down");

/** Has a version, or a fault instead, and counts how often it is read. */
class Source implements Versioned {
  readonly versionTtlMs = TTL;
  now: number | Error = 1;
  looks = 0;

  version(): Promise<number> {
    this.looks++;
    return this.now instanceof Error ? Promise.reject(this.now) : later(this.now);
  }
}

async function later<T>(value: T): Promise<T> {
  await new Promise((resolve) => setTimeout(resolve));
  return value;
}

/** A step: what changes, and what is asked at which time. */
interface Step {
  readonly at: number;
  /** The version from now on, or why it cannot be read. */
  readonly version?: number | Error;
  /** How often the version was read in total after this step. */
  readonly looks: number;
  /** Whether a generation ended: at once, or when the version was read. */
  readonly ends: boolean | "at once";
  /** Whether to wait before reusing a lookup. */
  readonly waits: boolean;
}

const TABLE: [rule: string, steps: Step[]][] = [
  ["ends every five seconds, whether or not the version can be read", [
    { at: 0, looks: 1, ends: "at once", waits: true },
    { at: 4_999, looks: 2, ends: false, waits: true },
    { at: 5_000, looks: 2, ends: "at once", waits: false },
    { at: 5_001, version: DOWN, looks: 2, ends: false, waits: false },
    { at: 9_999, looks: 3, ends: false, waits: true },
    { at: 10_000, looks: 3, ends: "at once", waits: false },
    { at: 10_098, looks: 4, ends: false, waits: false },
    { at: 17_000, looks: 5, ends: "at once", waits: false },
    { at: 21_999, looks: 6, ends: false, waits: false },
    { at: 22_000, looks: 6, ends: "at once", waits: false },
  ]],
  ["ends every five seconds, whatever is published meanwhile", [
    { at: 0, looks: 1, ends: "at once", waits: true },
    { at: 4_000, version: 2, looks: 2, ends: true, waits: true },
    { at: 4_999, looks: 3, ends: false, waits: true },
    { at: 5_000, looks: 3, ends: "at once", waits: false },
  ]],
  ["reads the version before anything is cached", [
    { at: 0, looks: 1, ends: true, waits: true },
    { at: 0, looks: 1, ends: false, waits: false },
  ]],
  ["reads it again after half the TTL, and waits for it only after the whole TTL", [
    { at: 0, looks: 1, ends: true, waits: true },
    { at: 49, looks: 1, ends: false, waits: false },
    { at: 50, looks: 2, ends: false, waits: false },
    { at: 99, looks: 2, ends: false, waits: false },
    { at: 150, looks: 3, ends: false, waits: true },
    { at: 4_999, looks: 4, ends: false, waits: true },
  ]],
  ["ends a generation with each change", [
    { at: 0, looks: 1, ends: true, waits: true },
    { at: 49, version: 2, looks: 1, ends: false, waits: false },
    { at: 100, looks: 2, ends: true, waits: true },
    { at: 200, version: 1, looks: 3, ends: true, waits: true }, // e.g. a backup
  ]],
  ["continues while the version cannot be read, without waiting", [
    { at: 0, looks: 1, ends: true, waits: true },
    { at: 100, version: DOWN, looks: 2, ends: false, waits: true },
    { at: 149, looks: 2, ends: false, waits: false },
    { at: 200, looks: 3, ends: false, waits: false },
    { at: 300, version: 1, looks: 4, ends: false, waits: false },
    { at: 400, looks: 5, ends: false, waits: true },
  ]],
  ["detects a change made while the version could not be read", [
    { at: 0, looks: 1, ends: true, waits: true },
    { at: 100, version: DOWN, looks: 2, ends: false, waits: true },
    { at: 200, version: 2, looks: 3, ends: true, waits: false },
  ]],
  ["keeps nothing from before the first version it reads", [
    { at: 0, version: DOWN, looks: 1, ends: "at once", waits: true },
    { at: 50, version: 1, looks: 2, ends: true, waits: false },
  ]],
  ["ends when the clock is set back, and does not wait longer", [
    { at: 1_000_000, looks: 1, ends: true, waits: true },
    { at: 5, looks: 2, ends: "at once", waits: true },
    { at: 54, looks: 2, ends: false, waits: false },
    { at: 55, looks: 3, ends: false, waits: false },
    { at: 54, looks: 4, ends: "at once", waits: true },
    { at: 100, looks: 4, ends: false, waits: false },
  ]],
];

for (const [rule, steps] of TABLE) {
  Deno.test(`Generations ${rule}`, async () => {
    const source = new Source();
    const generations = new Generations(source);
    let { generation } = generations;
    for (const { at, version, looks, ends, waits } of steps) {
      const what = `at ${at}`;
      if (version !== undefined) source.now = version;
      const look = generations.refresh(at);
      assertEquals(look !== undefined, waits, what);
      assertEquals(generations.isCurrent(generation, at), !waits && ends !== "at once", what);
      await later(look);
      assertEquals(source.looks, looks, what);
      assertEquals(generations.generation !== generation, ends !== false, what);
      assertEquals(generations.isCurrent(generation, at), ends === false, what);
      generation = generations.generation;
      assertEquals(source.looks, looks, `${what}, asked again`);
    }
  });
}

Deno.test("Generations ends a period every five seconds and with a fault, not with a change", async () => {
  const source = new Source();
  const generations = new Generations(source);
  const rows: [at: number, change: () => void, hasEnded: boolean][] = [
    [0, () => {}, true],
    [1_000, () => source.now = 2, false],
    [2_000, () => generations.end(), false],
    [3_000, () => generations.endPeriod(), true],
    [6_999, () => source.now = 3, false],
    [7_000, () => {}, true],
    [6_000, () => {}, true], // the clock was set back
  ];
  for (const [at, change, hasEnded] of rows) {
    const { period } = generations;
    change();
    await generations.refresh(at);
    assertEquals(generations.period !== period, hasEnded, `at ${at}`);
  }
});

Deno.test("Generations reads the version once for simultaneous callers", async () => {
  const source = new Source();
  const generations = new Generations(source);
  const looks = Array.from({ length: 9 }, () => generations.refresh(0));
  await Promise.all(looks);
  assertEquals([source.looks, new Set(looks).size], [1, 1]);
});
