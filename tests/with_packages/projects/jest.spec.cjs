/* global test, expect */

const { calling } = require("./calls.cjs");

test("the old path is called", async () => {
  expect(await calling).toBe("@1795219200 @1795219200 @1795219200");
});
