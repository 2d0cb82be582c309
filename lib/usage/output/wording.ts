/** How numbers, spans of time and long lists are written, and what processes are called. */

import type { ProcessIdentity, Session } from "../record/records.ts";
import { enumerated, instant, p, path, type Phrase } from "./phrase.ts";

/** The limit on lines in a list, or names in a cell. The JSON has them all. Routes have no limit. */
export const MAX_LISTED = 25;

/** The limit on names in a sentence, and on routes whose days without calls are shown. */
export const MAX_IN_DETAIL = 5;

/** Formats a number with separators, regardless of the locale. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Formats a count with its noun, e.g. "1 call", "1,000 calls". */
export function plural(value: number, noun: string, ending = "s"): string {
  return `${count(value)} ${noun}${value === 1 ? "" : ending}`;
}

/** What names a process, where it is known. */
type ProcessName = Partial<{ readonly process: ProcessIdentity }>;

/** Names a process for people, e.g. "process 4711 on web-1", or "a process". */
export function processText({ process }: ProcessName): Phrase {
  if (process === undefined) return ["a process"];
  const { machine, pid } = process;
  return [`process ${pid}${machine === undefined ? "" : ` on ${machine}`}`];
}

/** Names a session, e.g. "session 3d3a… (process 4711 on web-1, started at 2026-11-22T03:00:00Z)". */
export function sessionText({ id, process }: Pick<Session, "id" | "process">): Phrase {
  return p`session ${id} (${processText({ process })}, started at ${instant(process.started)})`;
}

/** Names routes, e.g. "/v1/songs and /v1/albums", or counts them, e.g. "40 routes". */
export function routesText(routes: readonly string[]): Phrase {
  return routes.length > MAX_IN_DETAIL
    ? [plural(routes.length, "route")]
    : enumerated(routes.map((route) => [path(route)]));
}

/** Names clients, e.g. "app curl, app okhttp, and 3 more clients". */
export function namesText(clients: readonly string[]): string {
  const listed = clients.slice(0, MAX_IN_DETAIL);
  const more = clients.length - listed.length;
  return listed.join(", ") + (more > 0 ? `, and ${plural(more, "more client")}` : "");
}

/** A time that may have no end. */
type Span = { readonly start: number; readonly end?: number | undefined };

/** Formats an interval with its length, e.g. "2027-06-10T09:00:00Z to … (10 min)". */
export function intervalText({ start, end = start }: Span): Phrase {
  return p`${instant(start)} to ${instant(end)} (${durationText(end - start)})`;
}

/** Formats how long intervals took together, e.g. "3 h 10 min". */
export function totalText(intervals: readonly Span[]): string {
  return durationText(intervals.reduce((sum, { start, end = start }) => sum + end - start, 0));
}

/** Formats a duration to the minute, or the second below one, e.g. "3 h 10 min", "3 h" or "50 s". */
export function durationText(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  const hours = minutes < 60 ? [] : [`${count(Math.floor(minutes / 60))} h`];
  const rest = hours.length > 0 && minutes % 60 === 0 ? [] : [`${minutes % 60} min`];
  return [...hours, ...rest].join(" ");
}
