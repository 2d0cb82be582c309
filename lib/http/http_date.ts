/**
 * HTTP-date (RFC 9110 §5.6.7), parsed strictly. `Date.parse` accepts far more than the RFC's three
 * formats, but recipients must ignore a date in any other format.
 */

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const SHORT_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
const MONTH = `(?<month>${MONTHS.join("|")})`;
// A leap second (60) carries into the next minute.
const TIME = "(?<time>(?:[01]\\d|2[0-3]):[0-5]\\d):(?<second>[0-5]\\d|60)";

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
 * Parses an HTTP-date in any of its three formats. The weekday may be wrong, because some senders
 * get it wrong and nothing depends on it.
 *
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

type Parts = Record<"day" | "month" | "year" | "time" | "second", string>;

function instantOf({ day, month, year, time, second }: Parts, now: number): number | undefined {
  const number = String(MONTHS.indexOf(month) + 1).padStart(2, "0");
  const instantIn = (year: string) => {
    const date = `${year}-${number}-${day.replace(" ", "0")}`;
    return isDay(date) ? Date.parse(`${date}T${time}Z`) + Number(second) * 1000 : undefined;
  };
  if (year.length === 4) return instantIn(year);

  // A two-digit year is the latest one with those digits, up to 50 years in the future (§5.6.7).
  const limit = new Date(now).setUTCFullYear(new Date(now).getUTCFullYear() + 50);
  const latest = new Date(limit).toISOString().slice(0, 2) + year;
  const instant = instantIn(latest);
  return instant !== undefined && instant <= limit
    ? instant
    : instantIn(String(Number(latest) - 100));
}

/** Returns whether a date, like `2024-02-29`, is in the calendar. */
export function isDay(date: string): boolean {
  // 30 February is either invalid or parsed as a day in March.
  return new Date(date).toJSON()?.startsWith(date) ?? false;
}
