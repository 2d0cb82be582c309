/**
 * When and how something is retired. Everything the server says about it follows from one policy.
 */

/** What a policy is made of, as people write it. */
export interface PolicySettings {
  /** When the deprecation begins or began: an ISO 8601 date (midnight UTC) or instant. */
  readonly deprecatedAt: string;
  /** When the removal follows: an ISO 8601 date (midnight UTC) or instant. */
  readonly sunsetAt?: string | undefined;
  /** Trial removals before the sunset: ISO 8601 intervals, `start/end` or `start/duration`. */
  readonly brownouts?: readonly string[] | undefined;
  /** What answers after the sunset: 410, or 308 to the successor. `gone` when left out. */
  readonly afterSunset?: AfterSunset | undefined;
  /** Where the retirement is explained: an absolute path, or an `https:` URL. */
  readonly documentation?: string | undefined;
}

/** What answers after the sunset. */
export type AfterSunset = "gone" | "redirect";

/** A stretch of time, in milliseconds since the epoch and whole seconds; without its end. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** A policy that makes sense. Instants are milliseconds since the epoch, in whole seconds. */
export interface Policy {
  readonly deprecatedAt: number;
  readonly sunsetAt: number | undefined;
  /** In the order of time, without overlap. */
  readonly brownouts: readonly Interval[];
  readonly afterSunset: AfterSunset;
  readonly documentation: string | undefined;
}

/**
 * The phases of a retirement: the deprecation lies ahead; it is in force; a trial removal is on;
 * the sunset has passed.
 */
export type Phase = typeof PHASES[number];

/** Every {@linkcode Phase}, in the order in which they come. */
export const PHASES = ["announced", "deprecated", "brownout", "removed"] as const;

/** What a policy says of an instant. */
export interface Moment {
  readonly phase: Phase;
  /** When the next phase begins, in milliseconds since the epoch; `Infinity` for never. */
  readonly until: number;
}

/** A setting that cannot be used. */
export interface PolicyIssue {
  readonly setting: keyof PolicySettings;
  readonly value: string;
  readonly expected: string;
}

/** Settings that make no policy, each with its value and what is expected. */
export class PolicyError extends Error {
  override readonly name = "PolicyError";

  constructor(readonly issues: readonly PolicyIssue[]) {
    const lines = issues.map(({ setting, value, expected }) =>
      `${setting}: expected ${expected}, got ${JSON.stringify(value)}`
    );
    super(lines.join("\n"));
  }
}

const INSTANT = 'an ISO 8601 date or instant like "2027-06-30" or "2027-06-30T12:00:00Z"';
const INTERVAL = 'ISO 8601 intervals like "2027-03-01T09:00Z/2027-03-01T10:00Z" or ' +
  '"2027-03-01T09:00Z/PT1H"';

/**
 * Makes a policy of settings.
 *
 * @throws {PolicyError} When a date or an interval cannot be read, when the sunset comes before
 *   the deprecation, when a brownout ends before it starts, overlaps another, or is not between
 *   deprecation and sunset, or when the documentation is neither a path nor an `https:` URL.
 */
export function definePolicy(settings: PolicySettings): Policy {
  const issues: PolicyIssue[] = [];
  const refuse = (setting: keyof PolicySettings, value: string, expected: string) => {
    issues.push({ setting, value, expected });
  };
  const instantOf = (setting: "deprecatedAt" | "sunsetAt", text: string) => {
    const instant = parseInstant(text);
    if (instant === undefined) refuse(setting, text, INSTANT);
    return instant;
  };

  const { sunsetAt: sunsetText, afterSunset = "gone", documentation } = settings;
  const deprecatedAt = instantOf("deprecatedAt", settings.deprecatedAt);
  const sunsetAt = sunsetText === undefined ? undefined : instantOf("sunsetAt", sunsetText);
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    const expected = `an instant not before the deprecation at ${formatInstant(deprecatedAt)}`;
    refuse("sunsetAt", sunsetText as string, expected);
  }
  if (afterSunset !== "gone" && afterSunset !== "redirect") {
    refuse("afterSunset", afterSunset, '"gone" or "redirect"');
  }
  if (documentation !== undefined && !isLinkTarget(documentation)) {
    refuse("documentation", documentation, 'a path that starts with "/", or an "https:" URL');
  }

  const brownouts: (Interval & { text: string })[] = [];
  for (const text of settings.brownouts ?? []) {
    const interval = parseInterval(text);
    const expected = interval === undefined
      ? INTERVAL
      : interval.end <= interval.start
      ? "an interval that ends after it starts"
      : sunsetText === undefined
      ? "a sunset that it leads up to"
      : sunsetAt !== undefined && interval.end > sunsetAt
      ? `an end not after the sunset at ${formatInstant(sunsetAt)}`
      : deprecatedAt !== undefined && interval.start < deprecatedAt
      ? `a start not before the deprecation at ${formatInstant(deprecatedAt)}`
      : undefined;
    if (expected !== undefined) refuse("brownouts", text, expected);
    else if (interval !== undefined) brownouts.push({ ...interval, text });
  }
  brownouts.sort((a, b) => a.start - b.start);
  for (const [index, { start, text }] of brownouts.entries()) {
    const previous = brownouts[index - 1];
    if (previous === undefined || start >= previous.end) continue;
    refuse("brownouts", text, `no overlap with "${previous.text}"`);
  }

  if (deprecatedAt === undefined || issues.length > 0) throw new PolicyError(issues);
  const intervals = brownouts.map(({ start, end }) => ({ start, end }));
  return { deprecatedAt, sunsetAt, brownouts: intervals, afterSunset, documentation };
}

/** The phase at an instant (milliseconds since the epoch), and how long it lasts. */
export function momentAt({ deprecatedAt, sunsetAt, brownouts }: Policy, instant: number): Moment {
  if (sunsetAt !== undefined && instant >= sunsetAt) return { phase: "removed", until: Infinity };
  if (instant < deprecatedAt) return { phase: "announced", until: deprecatedAt };
  const next = brownouts.find(({ end }) => instant < end);
  if (next === undefined) return { phase: "deprecated", until: sunsetAt ?? Infinity };
  if (instant >= next.start) return { phase: "brownout", until: next.end };
  return { phase: "deprecated", until: next.start };
}

/** An instant as ISO 8601 in UTC, in whole seconds. */
export function formatInstant(instant: number): string {
  return Temporal.Instant.fromEpochMilliseconds(instant).toString({ smallestUnit: "second" });
}

/** A date or an instant with its offset; a time without one would depend on the machine. */
function parseInstant(text: string): number | undefined {
  const instant = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : text;
  return attempt(() => wholeSeconds(Temporal.Instant.from(instant).epochMilliseconds));
}

/** `start/end` or `start/duration`. */
function parseInterval(text: string): Interval | undefined {
  const [startText, endText, ...rest] = text.split("/");
  if (startText === undefined || endText === undefined || rest.length > 0) return undefined;
  const start = parseInstant(startText);
  if (start === undefined) return undefined;
  const end = /^P/i.test(endText) ? addDuration(start, endText) : parseInstant(endText);
  return end === undefined ? undefined : { start, end };
}

/** Days, weeks, months and years are the calendar's in UTC. */
function addDuration(start: number, duration: string): number | undefined {
  return attempt(() => {
    const zoned = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO("UTC");
    return wholeSeconds(zoned.add(Temporal.Duration.from(duration)).epochMilliseconds);
  });
}

/** Fields state seconds, so a phase must not change between two. */
function wholeSeconds(instant: number): number {
  return Math.floor(instant / 1000) * 1000;
}

/** `undefined` for what Temporal cannot read. */
function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** A URL reference (RFC 3986) that is a path of this server, or secure. */
function isLinkTarget(text: string): boolean {
  return /^(\/(?!\/)|https:\/\/)[\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text) &&
    URL.canParse(text, "https://localhost");
}
