import { assertEquals } from "@std/assert";
import { formatHttpDate, parseHttpDate } from "../../lib/http/http_date.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const EXAMPLE = Date.parse("1994-11-06T08:49:37Z");

Deno.test("parseHttpDate() parses the three formats, and nothing else", () => {
  const rows: [text: string, instant: number | undefined][] = [
    ["Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE],
    ["Sunday, 06-Nov-94 08:49:37 GMT", EXAMPLE],
    ["Sun Nov  6 08:49:37 1994", EXAMPLE],
    ["Sun Nov 06 08:49:37 1994", EXAMPLE], // asctime's day may have a zero (§5.6.7)
    ["Sun Nov 16 08:49:37 1994", Date.parse("1994-11-16T08:49:37Z")],
    ["Mon, 06 Nov 1994 08:49:37 GMT", EXAMPLE], // the wrong weekday
    ["Thu, 29 Feb 2024 00:00:00 GMT", Date.parse("2024-02-29T00:00:00Z")],
    ["Sat, 31 Dec 2016 23:59:60 GMT", Date.parse("2017-01-01T00:00:00Z")], // a leap second
    ["Sat, 01 Jan 0001 00:00:00 GMT", Date.parse("0001-01-01T00:00:00Z")],
    ["Wed, 29 Feb 2023 00:00:00 GMT", undefined],
    ["Fri, 31 Apr 2027 00:00:00 GMT", undefined],
    ["Fri, 00 Apr 2027 00:00:00 GMT", undefined],
    ["Sun, 06 Nov 1994 24:00:00 GMT", undefined],
    ["Sun, 06 Nov 1994 08:60:37 GMT", undefined],
    ["Sun, 06 Nov 1994 08:49:61 GMT", undefined],
    ["Sun, 6 Nov 1994 08:49:37 GMT", undefined],
    ["sun, 06 nov 1994 08:49:37 gmt", undefined],
    ["Sun, 06 Nov 1994 08:49:37 UTC", undefined],
    ["Sun, 06 Nov 1994 08:49:37 +0000", undefined],
    ["Sun, 06 Nov 1994 08:49:37", undefined],
    [" Sun, 06 Nov 1994 08:49:37 GMT", undefined],
    ["Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", undefined],
    ["Sun, 06-Nov-94 08:49:37 GMT", undefined],
    ["Sunday, 06 Nov 1994 08:49:37 GMT", undefined],
    ["Sun Nov 6 08:49:37 1994", undefined],
    ["1994-11-06T08:49:37Z", undefined],
    ["784111777", undefined],
    ["", undefined],
    ["0", undefined],
  ];
  for (const [text, instant] of rows) assertEquals(parseHttpDate(text, NOW), instant, text);
});

Deno.test("parseHttpDate() reads a two-digit year as the latest within fifty years", () => {
  const rows: [now: string, date: string, year: number | undefined][] = [
    ["2026-11-21", "21-Nov-76", 2076],
    ["2026-11-21", "22-Nov-76", 1976],
    ["2026-11-21", "01-Jan-77", 1977],
    ["2026-11-21", "01-Jan-99", 1999],
    ["2026-11-21", "01-Jan-00", 2000],
    ["2026-11-21", "01-Jan-26", 2026],
    ["1994-01-01", "01-Jan-44", 2044],
    ["1994-01-01", "01-Jan-45", 1945],
    ["2060-01-01", "01-Jan-05", 2105],
    ["2060-01-01", "29-Feb-00", 2000], // 2100 is not a leap year
  ];
  for (const [now, date, year] of rows) {
    const instant = parseHttpDate(`Sunday, ${date} 00:00:00 GMT`, Date.parse(now));
    const read = instant === undefined ? undefined : new Date(instant).getUTCFullYear();
    assertEquals(read, year, `${date} in ${now}`);
  }
});

/** An instant in each of the three formats, built from JavaScript's own output. */
function formatsOf(instant: number): string[] {
  const text = new Date(instant).toUTCString();
  const long = new Date(instant).toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
  const [weekday, day = "", month, year = "", time] = text.split(/,? /);
  return [
    text,
    `${long}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
    `${weekday} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`,
  ];
}

Deno.test("parseHttpDate() parses every weekday and month in each format, and formatHttpDate() writes them", () => {
  const days = Array.from({ length: 366 }, (_, day) => Date.UTC(2024, 0, 1 + day, 23, 59, 58));
  for (const year of ["0000", "9999"]) {
    const instant = Date.parse(`${year}-12-31T23:59:59Z`);
    assertEquals(parseHttpDate(formatHttpDate(instant), NOW), instant);
  }
  for (const day of days) {
    for (const text of formatsOf(day)) assertEquals(parseHttpDate(text, NOW), day, text);
    assertEquals(formatHttpDate(day + 999), formatsOf(day)[0]);
  }
});
