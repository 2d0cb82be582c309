import { assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { Generations } from "../../lib/storage/generations.ts";
import { ObjectChecks } from "../../lib/storage/object_checks.ts";
import { OneItem } from "../support/one_item.ts";

const DOWN = new StorageError("test", "no answer");
const MISSING = new StorageError("test", "missing");

type Name = "a" | "b" | "c";

/** A store of named objects, which counts the questions about each. */
class World {
  readonly generations = new Generations(new OneItem());
  readonly checks = new ObjectChecks(this.generations);
  readonly missing = new Set<Name>();
  isDown = false;
  asked = "";

  async ask(name: Name, now: number): Promise<string> {
    await this.generations.refresh(now);
    const content = { digest: name, length: 1 };
    const asking = this.checks.faultOf(content, now, async () => {
      this.asked += name;
      await new Promise((resolve) => setTimeout(resolve));
      if (this.isDown) throw DOWN;
      return this.missing.has(name) ? MISSING : undefined;
    });
    return await asking.then((fault) => fault === undefined ? "sound" : "fault", () => "503");
  }
}

/** A step: what changes, and who asks at which time. */
interface Step {
  readonly at: number;
  readonly change?: (world: World) => void;
  /** The objects, asked about at the same time. */
  readonly about: readonly Name[];
  /** The answers, in the same order. */
  readonly are: readonly string[];
  /** The objects that the store was asked about, in order. */
  readonly asks: string;
}

const SOUND = ["sound", "sound", "sound"];
const FAILED = ["503", "503", "503"];
const ALL = ["a", "b", "c"] as const;

const TABLE: [rule: string, steps: Step[]][] = [
  ["asks about a sound object once a minute, and about one every five seconds", [
    { at: 0, about: ALL, are: SOUND, asks: "abc" },
    { at: 4_999, about: ALL, are: SOUND, asks: "" },
    { at: 5_000, about: ["b"], are: ["sound"], asks: "b" },
    { at: 9_999, about: ALL, are: SOUND, asks: "" },
    { at: 54_000, about: ["b", "a", "c"], are: SOUND, asks: "b" },
    { at: 55_000, about: ALL, are: SOUND, asks: "ac" },
    { at: 58_999, about: ALL, are: SOUND, asks: "" },
  ]],
  ["does so whatever is published meanwhile", [
    { at: 0, about: ALL, are: SOUND, asks: "abc" },
    { at: 1, change: ({ generations }) => generations.end(), about: ALL, are: SOUND, asks: "" },
  ]],
  ["asks one question for all when the store does not answer, and another after a second", [
    { at: 0, about: ALL, are: SOUND, asks: "abc" },
    { at: 4_999, change: (world) => world.isDown = true, about: ALL, are: SOUND, asks: "" },
    { at: 5_000, about: ALL, are: FAILED, asks: "a" },
    { at: 5_999, about: ["c", "b"], are: ["503", "503"], asks: "" },
    { at: 6_000, about: ["c", "b"], are: ["503", "503"], asks: "c" },
    { at: 6_001, change: (world) => world.isDown = false, about: ["a"], are: ["503"], asks: "" },
    { at: 7_000, about: ["a", "b", "c", "a"], are: [...SOUND, "sound"], asks: "ac" },
  ]],
  ["relies on nothing once a question is not answered", [
    { at: 0, about: ["a", "b"], are: ["sound", "sound"], asks: "ab" },
    { at: 1, change: (world) => world.isDown = true, about: ["c"], are: ["503"], asks: "c" },
    { at: 2, about: ["a", "b"], are: ["503", "503"], asks: "a" },
  ]],
  ["takes a fault for an answer, until the next period", [
    { at: 0, about: ["a"], are: ["sound"], asks: "a" },
    {
      at: 5_000,
      change: ({ missing }) => missing.add("b"),
      about: ["b", "a"],
      are: ["fault", "sound"],
      asks: "b",
    },
    { at: 9_999, change: ({ missing }) => missing.clear(), about: ["b"], are: ["fault"], asks: "" },
    { at: 10_000, about: ["a", "b"], are: ["sound", "sound"], asks: "ab" },
  ]],
  ["asks about an object again that was discarded, and about no other", [
    { at: 0, about: ALL, are: SOUND, asks: "abc" },
    {
      at: 1,
      change: ({ checks, missing }) => {
        missing.add("b");
        checks.discard({ digest: "b", length: 1 });
      },
      about: ["a", "b", "c", "b"],
      are: ["sound", "fault", "sound", "fault"],
      asks: "b",
    },
  ]],
  ["asks again when the clock is set back", [
    { at: 1_000_000, about: ALL, are: SOUND, asks: "abc" },
    { at: 5, about: ALL, are: SOUND, asks: "abc" },
    { at: 6, about: ALL, are: SOUND, asks: "" },
  ]],
];

for (const [rule, steps] of TABLE) {
  Deno.test(`ObjectChecks ${rule}`, async () => {
    const world = new World();
    for (const { at, change, about, are, asks } of steps) {
      change?.(world);
      world.asked = "";
      const answers = await Promise.all(about.map((name) => world.ask(name, at)));
      assertEquals([answers, world.asked], [are, asks], `at ${at}`);
    }
  });
}

Deno.test("ObjectChecks tells apart objects at one place, by what was published", async () => {
  const checks = new ObjectChecks(new Generations(new OneItem()));
  const object = { digest: "a", length: 1, location: "s3://b/c", validator: '"1"' };
  const others = [{ digest: "b" }, { length: 2 }, { location: "s3://b/d" }, { validator: '"2"' }];
  let asked = 0;
  const ask = () => Promise.resolve(void asked++);
  for (const other of [{}, ...others, {}]) await checks.faultOf({ ...object, ...other }, 0, ask);
  assertEquals(asked, 1 + others.length);
});

Deno.test("ObjectChecks.faultOf() passes on why the store does not answer", async () => {
  const checks = new ObjectChecks(new Generations(new OneItem()));
  const ask = () => checks.faultOf({ digest: "a", length: 1 }, 0, () => Promise.reject(DOWN));
  for (const thrown of await Promise.all([1, 2].map(() => assertRejects(ask, StorageError)))) {
    assertEquals(thrown, DOWN);
  }
});
