/** How numbers, spans of time and long lists are written, and what a program is called. */

import type { Interval } from "../../lifecycle/instant.ts";
import type { ProcessIdentity, Session } from "../record/records.ts";
import { enumerated, instant, path, type Phrase, phrase } from "./phrase.ts";

/** The names of a program's command and settings, for sentences. */
export interface ProgramNames {
  /** The command as it is typed, e.g. `deno task media usage`. */
  readonly command: string;
  /** The instruction to have routes probed, e.g. "set PUBLIC_URL"; `undefined` if none is needed. */
  readonly howToProbe: string | undefined;
  /** The instruction to leave the probe out, e.g. "set PUBLIC_URL= for this command". */
  readonly howNotToProbe: string;
  /** The setting of the days to retain, e.g. `USAGE_DAYS`. */
  readonly retainSetting: string;
}

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

/** What names the session of a doubt, where it is known. */
type SessionName = Partial<{ readonly session: string; readonly process: ProcessIdentity }>;

/** Names the session of a doubt: "session 3d3a… (process 4711 on web-1, …)", or "a process". */
export function processText({ session: id, process }: SessionName): Phrase {
  return id === undefined || process === undefined ? ["a process"] : sessionText({ id, process });
}

/** Names a session, e.g. "session 3d3a… (process 4711 on web-1, started at 2026-11-22T03:00:00Z)". */
export function sessionText({ id, process }: Pick<Session, "id" | "process">): Phrase {
  const { machine, pid, started } = process;
  const place = machine === undefined ? "" : ` on ${machine}`;
  return phrase(`session ${id} (process ${pid}${place}, started at `, instant(started), ")");
}

/** Formats how many processes ended while they answered calls, as far as the record shows. */
export function endedText(processes: number): string {
  const were = processes === 1 ? "was" : "were";
  return `${plural(processes, "process", "es")} ended or ${were} cut off`;
}

/** Returns the number of processes that doubts are about. */
export function countProcesses(doubts: readonly { readonly session?: unknown }[]): number {
  return new Set(doubts.map(({ session }) => session)).size;
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

/** Formats an interval with its length, e.g. "2027-06-10T09:00:00Z to … (10 min)". */
export function intervalText(start: number, end: number): Phrase {
  return phrase(instant(start), " to ", instant(end), ` (${durationText(end - start)})`);
}

/** Formats how long stops took together, e.g. "3 h 10 min". */
export function totalText(stops: readonly Interval[]): string {
  return durationText(stops.reduce((sum, { start, end }) => sum + end - start, 0));
}

/** Formats a duration to the minute, e.g. "3 h 10 min". */
function durationText(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000);
  return minutes < 60
    ? `${minutes} min`
    : `${count(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}
