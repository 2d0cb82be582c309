import { assertEquals } from "@std/assert";
import { type ByteRange, parseByteRange } from "../../lib/http/byte_range.ts";

type Outcome = ByteRange | "unsatisfiable" | undefined;

Deno.test("parseByteRange() follows RFC 9110 §14", () => {
  const rows: [value: string, length: number, outcome: Outcome][] = [
    ["bytes=0-499", 10_000, { first: 0, last: 499 }],
    ["bytes=500-999", 10_000, { first: 500, last: 999 }],
    ["bytes=-500", 10_000, { first: 9500, last: 9999 }],
    ["bytes=9500-", 10_000, { first: 9500, last: 9999 }],
    ["bytes=0-0", 1, { first: 0, last: 0 }],
    ["bytes=0-", 1, { first: 0, last: 0 }],
    ["bytes=-20000", 10_000, { first: 0, last: 9999 }],
    ["bytes=9999-99999999999999999999", 10_000, { first: 9999, last: 9999 }],
    ["Bytes= 0-1 ", 10, { first: 0, last: 1 }],
    ["bytes=,0-1,", 10, { first: 0, last: 1 }], // empty list elements are ignored
    ["bytes=007-0008", 10, { first: 7, last: 8 }],
    ["bytes=10000-", 10_000, "unsatisfiable"],
    ["bytes=99999999999999999999-", 10_000, "unsatisfiable"],
    ["bytes=-0", 10_000, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=-1", 0, undefined],
    ["bytes=2-1", 10, undefined],
    ["bytes=99999999999999999999-99999999999999999998", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["bytes=", 10, undefined],
    ["bytes=-", 10, undefined],
    ["bytes=0", 10, undefined],
    ["bytes=--1", 10, undefined],
    ["bytes=0-1-2", 10, undefined],
    ["bytes=+0-1", 10, undefined],
    ["bytes=0x0-1", 10, undefined],
    ["bytes=0 - 1", 10, undefined],
    ["bytes =0-1", 10, undefined],
    ["bytes 0-1", 10, undefined],
    ["items=0-1", 10, undefined],
    ["0-1", 10, undefined],
    ["", 10, undefined],
  ];
  for (const [value, length, outcome] of rows) {
    assertEquals(parseByteRange(value, length), outcome, `${value} of ${length}`);
  }
});
