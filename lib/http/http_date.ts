/**
 * HTTP-date (RFC 9110 §5.6.7), parsed strictly: `Date.parse` accepts far more than the RFC's three
 * formats, and any other must be ignored.
 */

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const SHORT_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)";

const FORMATS = [
  // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${SHORT_DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  // rfc850-date: Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${LONG_DAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT$`),
  // asctime-date: Sun Nov  6 08:49:37 1994
  new RegExp(`^${SHORT_DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

/**
 * Formats an instant as an IMF-fixdate.
 *
 * @param instant Milliseconds since the epoch; fractions of a second are dropped.
 */
export function formatHttpDate(instant: number): string {
  return new Date(instant).toUTCString();
}

/**
 * Parses an HTTP-date in any of its three formats. The weekday must be a name, but not the right
 * one, because some senders get it wrong, and nothing depends on it.
 *
 * @param text The field value.
 * @param now Milliseconds since the epoch; determines the century of a two-digit year.
 * @returns Milliseconds since the epoch, or `undefined` if invalid, in which case a recipient
 *   ignores the field (RFC 9110 §13.1.3, §13.1.4).
 */
export function parseHttpDate(text: string, now: number): number | undefined {
  for (const format of FORMATS) {
    const parts = format.exec(text)?.groups as Parts | undefined;
    if (parts !== undefined) return instantOf(parts, now);
  }
  return undefined;
}

type Parts = Record<"day" | "month" | "year" | "hour" | "minute" | "second", string>;

function instantOf(parts: Parts, now: number): number | undefined {
  const month = MONTHS.indexOf(parts.month);
  const [day, hour, minute, second] = [parts.day, parts.hour, parts.minute, parts.second]
    .map(Number) as [number, number, number, number];
  // 60 is a leap second (§5.6.7), which carries into the next minute.
  if (hour > 23 || minute > 59 || second > 60) return undefined;

  const at = (year: number) => {
    const date = new Date(0);
    date.setUTCFullYear(year, month, day); // unlike Date.UTC, keeps years 0 to 99
    if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return undefined; // 31 February
    return date.setUTCHours(hour, minute, second);
  };
  if (parts.year.length === 4) return at(Number(parts.year));

  // A two-digit year is the latest one with those digits, up to 50 years in the future (§5.6.7).
  const limit = new Date(now).setUTCFullYear(new Date(now).getUTCFullYear() + 50);
  const century = Math.floor(new Date(limit).getUTCFullYear() / 100) * 100;
  const year = century + Number(parts.year);
  const instant = at(year);
  return instant !== undefined && instant <= limit ? instant : at(year - 100);
}
