import { expect, test } from "vitest";
import { calling } from "./calls.ts";

test("the old path is called", async () => {
  expect(await calling).toBe("@1795219200 @1795219200 @1795219200");
});
