import { assertEquals } from "@std/assert";
import { isBreaking } from "../../lib/lifecycle/breaking.ts";

/** The statuses with which a call fails anyway; every other one is a call that the removal breaks. */
const FAILING = [400, 401, 403, 404, 405, 407, 410];

/** 0 is a client that left. */
const STATUSES = [0, ...Array.from({ length: 500 }, (_, index) => 100 + index)];

const rest = { method: "GET", isRefused: false };

Deno.test("the removal breaks every call but those whose status says that it fails anyway", () => {
  const spared = STATUSES.filter((status) => !isBreaking({ ...rest, status }));
  assertEquals(spared, FAILING);
});

Deno.test("the removal breaks a call whose status is an answer, but no OPTIONS", () => {
  for (const status of FAILING) {
    const answers = new Set([status]);
    const spared = STATUSES.filter((status) => !isBreaking({ ...rest, status, answers }));
    assertEquals(spared, FAILING.filter((other) => other !== status));
    assertEquals(isBreaking({ method: "OPTIONS", status, answers, isRefused: false }), false);
  }
});
