import { assertEquals, assertThrows } from "@std/assert";
import fc from "../support/fast_check.ts";
import { requireHonestHead, StartError } from "../../lib/server/process.ts";

function isRefused(version: string): boolean {
  try {
    requireHonestHead(version);
    return false;
  } catch (error) {
    if (error instanceof StartError) return true;
    throw error;
  }
}

Deno.test("requireHonestHead() rejects exactly the releases 2.8.3 to 2.9.1", () => {
  const rows: [version: string, isRefused: boolean][] = [
    ["1.8.3", false],
    ["1.9.1", false],
    ["2.7.99", false],
    ["2.8.0", false],
    ["2.8.2", false],
    ["2.8.3", true],
    ["2.8.4", true],
    ["2.8.10", true], // after 2.8.3, although it sorts before as text
    ["2.9.0", true],
    ["2.9.1", true],
    ["2.9.2", false],
    ["2.9.6", false],
    ["2.9.10", false],
    ["2.10.0", false],
    ["2.80.3", false],
    ["3.0.0", false],
    ["3.8.3", false],
    ["20.9.0", false],
  ];
  for (const [version, expected] of rows) assertEquals(isRefused(version), expected, version);
});

Deno.test("requireHonestHead() treats a prerelease or a build as its release", () => {
  const part = fc.nat(12);
  const releases = fc.oneof(
    fc.tuple(part, part, part),
    fc.tuple(fc.constant(2), fc.constantFrom(8, 9), part),
  );
  const suffixes = fc.constantFrom("", "-rc.1", "-alpha", "-rc.1+3f9c2de", "+3f9c2de", "-1.2.3");
  fc.assert(fc.property(releases, suffixes, ([major, minor, patch], suffix) => {
    const place = major * 10_000 + minor * 100 + patch;
    const expected = 20_803 <= place && place <= 20_901;
    assertEquals(isRefused(`${major}.${minor}.${patch}${suffix}`), expected);
  }));
});

Deno.test("requireHonestHead() says what is wrong, and which release to run", () => {
  const { message } = assertThrows(() => requireHonestHead("2.9.0-rc.1"), StartError);
  assertEquals(
    message,
    'Deno 2.9.0-rc.1 answers every HEAD with "content-length: 0", as do all releases from ' +
      "2.8.3 to 2.9.1; run 2.9.2 or later",
  );
});
