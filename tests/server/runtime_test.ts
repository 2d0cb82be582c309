import { assertEquals } from "@std/assert";
import { refusalOfRelease } from "../../lib/server/runtime.ts";

Deno.test("refusalOfRelease() rejects the releases before 2.9.2, naming both", () => {
  const rows: [version: string, isRefused: boolean][] = [
    ["1.46.3", true],
    ["2.5.0", true],
    ["2.8.2", true], // compresses a GET and not its HEAD
    ["2.8.10", true],
    ["2.9.0-rc.1+3f9c2de", true],
    ["2.9.1", true],
    ["2.9.2", false],
    ["2.9.10", false], // although it sorts before as text
    ["2.10.0", false],
    ["2.80.3", false],
    ["3.0.0", false],
  ];
  for (const [version, isRefused] of rows) {
    assertEquals(
      refusalOfRelease(version),
      isRefused
        ? `media-head cannot run on Deno ${version}: it needs Deno 2.9.2 or later`
        : undefined,
    );
  }
});
