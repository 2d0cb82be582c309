import { assertEquals, assertRejects } from "@std/assert";
import { Gate } from "../../../lib/storage/bucket/gate.ts";

const never = new AbortController().signal;

Deno.test("Gate.enter() lets so many in at once, the others in their order", async () => {
  const gate = new Gate(2);
  const [first, second] = [await gate.enter(never), await gate.enter(never)];
  const entered: number[] = [];
  const waiting = [3, 4, 5].map(async (number) => {
    const leave = await gate.enter(never);
    entered.push(number);
    return leave;
  });
  await Promise.resolve();
  assertEquals(entered, []);
  first();
  (await waiting[0])?.();
  (await waiting[1])?.();
  assertEquals(entered, [3, 4]);
  second();
  (await waiting[2])?.();
  const again = await Promise.all([gate.enter(never), gate.enter(never)]);
  again.forEach((leave) => leave());
});

Deno.test("Gate.enter() gives up with the signal, and nobody's place is lost", async () => {
  const gate = new Gate(1);
  const leave = await gate.enter(never);
  const controller = new AbortController();
  const waiting = gate.enter(controller.signal);
  const other = gate.enter(never);
  controller.abort(new RangeError("no longer"));
  await assertRejects(() => waiting, RangeError);
  await assertRejects(() => gate.enter(controller.signal), RangeError);
  leave();
  (await other)();
  (await gate.enter(never))();
});
