import { assertThrows } from "@std/assert";
import { RefusalError, requireHonestHead } from "../lib/server.ts";

Deno.test("requireHonestHead() refuses the releases that falsify the length of a HEAD", () => {
  for (const version of ["2.8.3", "2.8.4", "2.9.0", "2.9.1", "2.9.0-rc.1", "2.9.1+abc"]) {
    assertThrows(() => requireHonestHead(version), RefusalError, version);
  }
  for (
    const version of [
      "1.46.3",
      "2.0.0",
      "2.8.2",
      "2.9.2",
      "2.9.6",
      "2.10.0",
      "3.0.0",
      "2.10.0-rc.1",
    ]
  ) {
    requireHonestHead(version);
  }
});
