import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { FailedRead } from "../../lib/storage/item.ts";
import { Generations, PERIOD_MS } from "../../lib/storage/generations.ts";
import { ObjectChecks } from "../../lib/storage/object_checks.ts";
import { fakeTimers } from "../support/fake_timers.ts";
import { OneItem } from "../support/one_item.ts";
import { randomFrom } from "../support/random.ts";

const DOWN = new StorageError("test", "no answer");
const MISSING = new StorageError("test", "missing");

/** Milliseconds until a question that is not answered fails. */
const TIMEOUT_MS = 4_500;

/** The number of microtasks in a row that may follow from a timer. */
const MAX_MICROTASKS = 50;

async function microtasks(): Promise<void> {
  for (let count = 0; count < MAX_MICROTASKS; count++) await Promise.resolve();
}

/** A store of named objects, which counts the questions about each, and who asks it. */
class World implements Disposable {
  readonly time = fakeTimers(microtasks);
  /** The time of day, in milliseconds since the epoch. */
  now = 0;
  readonly generations = new Generations(new OneItem());
  readonly checks = new ObjectChecks(this.generations, () => this.now);
  readonly missing = new Set<string>();
  readonly hanging = new Set<string>();
  isDown = false;
  /** Milliseconds until an answer. */
  latency = () => 1;
  asked: string[] = [];
  reads: (FailedRead | undefined)[] = [];

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
  }

  async ask(name: string): Promise<string> {
    await this.generations.refresh(this.now);
    const fault = await this.checks.faultOf(contentOf(name), async (read) => {
      this.asked.push(name);
      this.reads.push(read);
      const isHanging = this.hanging.has(name);
      const pause = isHanging ? TIMEOUT_MS : this.latency();
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (isHanging || this.isDown) throw DOWN;
      return this.missing.has(name) ? MISSING : undefined;
    });
    if (fault === undefined) return "sound";
    return fault === DOWN ? "no answer" : "missing";
  }

  /** Lets time pass, also the time of day. */
  async pass(milliseconds: number): Promise<void> {
    const STEP = 10;
    for (let passed = 0; passed < milliseconds; passed += STEP) {
      await this.time.pass(STEP);
      this.now += STEP;
    }
  }
}

function contentOf(name: string) {
  return { digest: name, length: 1 };
}

/** A step: what changes, and who asks at which time of day. */
interface Step {
  readonly at: number;
  readonly change?: (world: World) => void;
  /** The objects, asked about at the same time. */
  readonly about: string;
  /** The answers, in the same order. */
  readonly are: readonly string[];
  /** The objects that the store was asked about, in order. */
  readonly asks: string;
}

const SOUND = ["sound", "sound", "sound"];
const FAILED = ["no answer", "no answer", "no answer"];

const TABLE: [rule: string, steps: Step[]][] = [
  ["asks about a sound object once a minute, and about one every five seconds", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    { at: 4_999, about: "abc", are: SOUND, asks: "" },
    { at: 5_000, about: "b", are: ["sound"], asks: "b" },
    { at: 9_999, about: "abc", are: SOUND, asks: "" },
    { at: 54_000, about: "bac", are: SOUND, asks: "b" },
    { at: 55_000, about: "abc", are: SOUND, asks: "ac" },
    { at: 58_999, about: "abc", are: SOUND, asks: "" },
  ]],
  ["does so whatever is published meanwhile", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    { at: 1, change: ({ generations }) => generations.end(), about: "abc", are: SOUND, asks: "" },
  ]],
  ["asks about one object after another while the store does not answer, and about each once", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    { at: 4_999, change: (world) => world.isDown = true, about: "abc", are: SOUND, asks: "" },
    { at: 5_000, about: "abc", are: FAILED, asks: "abc" },
    { at: 9_999, about: "abc", are: FAILED, asks: "" },
    {
      at: 9_999,
      change: (world) => world.isDown = false,
      about: "abcd",
      are: [...FAILED, "sound"],
      asks: "d",
    },
    { at: 10_000, about: "abca", are: [...SOUND, "sound"], asks: "abc" },
  ]],
  ["relies on nothing once nothing is answered, until something is", [
    { at: 0, about: "ab", are: ["sound", "sound"], asks: "ab" },
    { at: 1, change: (world) => world.isDown = true, about: "c", are: ["no answer"], asks: "c" },
    { at: 2, about: "a", are: ["no answer"], asks: "a" },
    { at: 3, change: (world) => world.isDown = false, about: "b", are: ["sound"], asks: "b" },
    { at: 4, about: "abc", are: ["no answer", "sound", "no answer"], asks: "" },
  ]],
  ["takes an answer to a client's GET for an answer", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    { at: 5_000, about: "", are: [], asks: "" },
    {
      at: 5_000,
      change: ({ generations, checks }) => (void generations.refresh(5_000), checks.noteAnswer()),
      about: "abc",
      are: SOUND,
      asks: "",
    },
    { at: 10_000, about: "abc", are: SOUND, asks: "a" },
  ]],
  ["takes a fault for an answer, and remembers it for five seconds by the clock", [
    { at: 0, about: "a", are: ["sound"], asks: "a" },
    {
      at: 4_000,
      change: ({ missing }) => missing.add("b"),
      about: "ba",
      are: ["missing", "sound"],
      asks: "b",
    },
    {
      at: 8_999,
      change: ({ missing }) => missing.clear(),
      about: "ab",
      are: ["sound", "missing"],
      asks: "a",
    },
    { at: 9_000, about: "ab", are: ["sound", "sound"], asks: "b" },
  ]],
  ["remembers the fault that a read found, and no other object's", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    {
      at: 1,
      change: ({ checks }) => checks.noteFailure(contentOf("b"), MISSING, {}),
      about: "abc",
      are: ["sound", "missing", "sound"],
      asks: "",
    },
    {
      at: 4_000,
      change: ({ checks }) => checks.noteFailure(contentOf("c"), MISSING, {}),
      about: "abc",
      are: ["sound", "missing", "missing"],
      asks: "",
    },
    { at: 5_001, about: "abc", are: ["sound", "sound", "missing"], asks: "ab" },
    { at: 9_000, about: "abc", are: SOUND, asks: "c" },
  ]],
  ["asks again about an object whose content was cut off", [
    { at: 0, about: "abc", are: SOUND, asks: "abc" },
    {
      at: 1,
      change: ({ checks }) => checks.noteCutOff(contentOf("b"), {}),
      about: "abcb",
      are: [...SOUND, "sound"],
      asks: "b",
    },
  ]],
  ["asks again when the clock is set back", [
    { at: 1_000_000, about: "abc", are: SOUND, asks: "abc" },
    { at: 5, about: "abc", are: SOUND, asks: "abc" },
    { at: 6, about: "abc", are: SOUND, asks: "" },
  ]],
];

for (const [rule, steps] of TABLE) {
  Deno.test(`ObjectChecks ${rule}`, async () => {
    using world = new World();
    for (const { at, change, about, are, asks } of steps) {
      world.now = at;
      change?.(world);
      world.asked = [];
      const asking = Promise.all([...about].map((name) => world.ask(name)));
      const answers = await world.time.during(asking);
      assertEquals([answers, world.asked.join("")], [are, asks], `at ${at}`);
      await world.time.pass(1_000); // so that the next question may be asked at once
    }
    assertEquals(world.time.pending, 0);
  });
}

Deno.test("ObjectChecks tries a failed read again until it succeeds", async () => {
  using world = new World();
  const [whole, tail] = [{}, { range: { first: 9, last: 9 } }];
  const ask = async (at: number) => {
    world.now = at;
    world.reads = [];
    const answer = await world.time.during(world.ask("a"));
    await world.time.pass(1_000);
    return [answer, ...world.reads];
  };
  assertEquals(await ask(0), ["sound", undefined]);
  world.missing.add("a");
  world.checks.noteFailure(contentOf("a"), MISSING, whole);
  assertEquals(await ask(4_999), ["missing"]);
  assertEquals(await ask(5_000), ["missing", whole]);
  assertEquals(await ask(10_000), ["missing", whole]);
  world.checks.noteCutOff(contentOf("a"), tail);
  assertEquals(await ask(10_001), ["missing", tail]);
  world.missing.clear();
  assertEquals(await ask(15_001), ["sound", tail]);
  assertEquals(await ask(70_001), ["sound", undefined]);
});

Deno.test("ObjectChecks keeps what a read found while a check was in flight", async () => {
  using world = new World();
  const asking = world.ask("a");
  await world.time.pass(0);
  world.checks.noteFailure(contentOf("a"), MISSING, {});
  assertEquals(await world.time.during(asking), "missing");
  assertEquals(await world.time.during(world.ask("a")), "missing");
  assertEquals(world.asked, ["a"]);
});

for (const clients of [1, 20]) {
  Deno.test(`an object that hangs holds up no other (${clients} clients ask for it in a loop)`, async () => {
    using world = new World();
    const sound = ["b", "c", "d", "e", "f"];
    world.hanging.add("a");
    let isOver = false;
    let rejected = 0;
    const loop = async (
      name: string,
      pause: number,
      check: (answer: string, took: number) => void,
    ) => {
      while (!isOver) {
        const since = world.time.now();
        check(await world.ask(name), world.time.now() - since);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    };
    const loops = Array.from({ length: clients }, () =>
      loop("a", 1, (answer) => {
        assertEquals(answer, "no answer");
        rejected++;
      }));
    for (const [index, name] of sound.entries()) {
      loops.push(loop(name, 70 + 400 * index, (answer, took) => {
        assertEquals(answer, "sound");
        assert(took < 1_000, `${took} ms`);
      }));
    }
    await world.pass(6 * PERIOD_MS);
    assert(rejected > 0);
    const about = (name: string) => world.asked.filter((asked) => asked === name).length;
    assert(about("a") <= 4, `asked ${about("a")} times`); // once in 9.5 s
    isOver = true;
    await world.pass(6_000);
    await Promise.all(loops);
  });
}

Deno.test("ObjectChecks takes silence for the fault of one object only if others are answered", async () => {
  for (const isAlone of [true, false]) {
    using world = new World();
    assertEquals(await world.time.during(world.ask("b")), "sound");
    world.hanging.add("a");
    const hanging = world.ask("a");
    await world.pass(1_000);
    if (!isAlone) assertEquals(await world.time.during(world.ask("c")), "sound");
    await world.pass(3_600);
    assertEquals(await hanging, "no answer");
    world.asked = [];
    assertEquals(await world.time.during(world.ask("b")), "sound");
    assertEquals(world.asked, isAlone ? ["b"] : []);
  }
});

Deno.test("a dead store is asked at most ten times a second, and nobody waits for long", async () => {
  for (const isSilent of [true, false]) {
    using world = new World();
    const names = Array.from({ length: 300 }, (_, index) => `object ${index}`);
    world.isDown = true;
    if (isSilent) names.forEach((name) => world.hanging.add(name));
    const waits: number[] = [];
    const askAll = () =>
      names.map(async (name) => {
        const since = world.time.now();
        assertEquals(await world.ask(name), "no answer");
        waits.push(world.time.now() - since);
      });
    const asking: Promise<void>[] = [];
    for (let second = 0; second < 30; second++) {
      const before = world.asked.length;
      asking.push(...askAll());
      await world.pass(1_000);
      assert(world.asked.length - before <= 11, `${world.asked.length - before} in a second`);
    }
    await world.pass(6_000);
    await Promise.all(asking);
    assertEquals(waits.length, 30 * names.length);
    assert(Math.max(...waits) < (isSilent ? 5_000 : 1_500), `${Math.max(...waits)} ms`);
    assertEquals(world.time.pending, 0);
  }
});

Deno.test("a thousand hot objects in a store of 80 to 200 ms cost fewer than 20 questions a second", async () => {
  using world = new World();
  const random = randomFrom(1);
  world.latency = () => 80 + 120 * random();
  const names = Array.from({ length: 1_000 }, (_, index) => `object ${index}`);
  const askAll = () => Promise.all(names.map((name) => world.ask(name)));
  await world.time.during(askAll());
  world.asked = [];
  const SECONDS = 120;
  const asking: Promise<string[]>[] = [];
  for (let second = 0; second < SECONDS; second++) {
    await world.pass(1_000);
    asking.push(askAll());
  }
  await world.pass(1_000);
  for (const answers of await Promise.all(asking)) assert(answers.every((one) => one === "sound"));
  assert(world.asked.length < 20 * SECONDS, `${world.asked.length} in ${SECONDS} s`);
  assert(world.asked.length >= 2 * names.length);
});

Deno.test("ObjectChecks tells apart objects at one place, by what was published", async () => {
  const checks = new ObjectChecks(new Generations(new OneItem()), () => 0);
  const object = { digest: "a", length: 1, location: "s3://b/c", validator: '"1"' };
  const others = [{ digest: "b" }, { length: 2 }, { location: "s3://b/d" }, { validator: '"2"' }];
  let asked = 0;
  const ask = () => Promise.resolve(void asked++);
  for (const other of [{}, ...others, {}]) await checks.faultOf({ ...object, ...other }, ask);
  assertEquals(asked, 1 + others.length);
});

Deno.test("ObjectChecks.faultOf() passes a bug on, and asks again", async () => {
  const checks = new ObjectChecks(new Generations(new OneItem()), () => 0);
  const bug = () => checks.faultOf(contentOf("a"), () => Promise.reject(new TypeError("bug")));
  await assertRejects(bug, TypeError, "bug");
  checks.noteAnswer();
  assertEquals(await checks.faultOf(contentOf("a"), () => Promise.resolve(undefined)), undefined);
});
