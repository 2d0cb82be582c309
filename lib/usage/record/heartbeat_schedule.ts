/** When a process's heartbeats are due. */

/** Milliseconds between two heartbeats of a process that counts nothing. */
export const HEARTBEAT_INTERVAL_MS = 5_000;

/** Milliseconds after the first count at which a heartbeat is due. */
const PROMPT_MS = 100;

/** Milliseconds between the beginnings of two heartbeats, and before a failed one is tried again. */
const SHORTEST_INTERVAL_MS = 1_000;

/** The outcome of a heartbeat. After the last one, none is due until something is counted. */
type Outcome = "recorded" | "failed" | "last";

/**
 * Runs heartbeats, one at a time: a tenth of a second after the first count if the last one began a
 * second ago, else every five seconds. One that is due meanwhile follows at once. One that failed is
 * tried again after a second, then every five. The timer does not keep the process running.
 */
export class HeartbeatSchedule {
  readonly #beat: () => Promise<Outcome>;
  readonly #lifetime: () => number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the next heartbeat is due, by the process's lifetime. */
  #due = Infinity;
  #began = -Infinity;
  #failures = 0;
  /** The heartbeat under way. */
  #running: Promise<void> | undefined;
  /** The heartbeat that follows it at once, because somebody asked for one. */
  #waiting: Promise<void> | undefined;

  /**
   * @param beat Sends a heartbeat. Never rejects.
   * @param lifetime Returns the milliseconds that the process has lived, from any origin.
   */
  constructor(beat: () => Promise<Outcome>, lifetime: () => number) {
    this.#beat = beat;
    this.#lifetime = lifetime;
  }

  /** Arranges a heartbeat, because something was counted for the first time since the last one. */
  count(): void {
    if (this.#failures > 0) return; // it comes with the next attempt
    const now = this.#lifetime();
    this.#arrange(Math.max(now + PROMPT_MS, this.#began + SHORTEST_INTERVAL_MS));
  }

  /** Sends a heartbeat at once, or after the one under way. Never rejects. */
  flush(): Promise<void> {
    if (this.#running === undefined) return this.#run();
    return this.#waiting ??= this.#running.then(() => {
      this.#waiting = undefined;
      return this.#running ?? this.#run(); // one may have begun just before
    });
  }

  /** Sends none by itself any more, until something is counted. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#due = Infinity;
  }

  #run(): Promise<void> {
    clearTimeout(this.#timer);
    this.#due = Infinity;
    this.#began = this.#lifetime();
    return this.#running = this.#beat().then((outcome) => {
      this.#running = undefined;
      this.#failures = outcome === "failed" ? this.#failures + 1 : 0;
      if (outcome === "failed") {
        const pause = this.#failures === 1 ? SHORTEST_INTERVAL_MS : HEARTBEAT_INTERVAL_MS;
        this.#due = this.#lifetime() + pause;
      }
      if (outcome === "recorded") this.#arrange(this.#began + HEARTBEAT_INTERVAL_MS);
      else if (this.#due < Infinity) this.#arrange(this.#due);
    });
  }

  /** Arranges a heartbeat at an instant of the lifetime, unless one is due before. */
  #arrange(due: number): void {
    this.#due = Math.min(this.#due, due);
    clearTimeout(this.#timer);
    if (this.#running !== undefined) return; // arranged at its end
    this.#timer = setTimeout(() => void this.flush(), Math.max(0, this.#due - this.#lifetime()));
    this.#timer.unref();
  }
}
