import { assertEquals, assertThrows } from "@std/assert";
import { requireHonestHead, StartError } from "../../lib/server/process.ts";

Deno.test("requireHonestHead() rejects exactly the releases 2.8.3 to 2.9.1", () => {
  const rows: [version: string, isRefused: boolean][] = [
    ["2.8.2", false],
    ["2.8.3", true],
    ["2.8.10", true], // after 2.8.3, although it sorts before as text
    ["2.9.0-rc.1+3f9c2de", true],
    ["2.9.1", true],
    ["2.9.10", false],
    ["2.80.3", false],
  ];
  for (const [version, isRefused] of rows) {
    if (!isRefused) {
      requireHonestHead(version);
      continue;
    }
    const { message } = assertThrows(() => requireHonestHead(version), StartError);
    assertEquals(
      message,
      `Deno ${version} answers every HEAD with "content-length: 0", as do all releases from ` +
        "2.8.3 to 2.9.1; run 2.9.2 or later",
    );
  }
});
