/**
 * What the readers of containers have in common.
 */

/** What a track holds, as far as it matters here; a codec where it decides the media type. */
export interface Track {
  readonly holds: "sound" | "picture" | "other";
  readonly codec?: "opus";
}

/** A part of a container: where its content lies, in bytes from the beginning of the file. */
export interface Part {
  readonly id: number;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Parts looked at on one level before a reader gives up: more than any real file needs. */
export const MAX_PARTS = 10_000;
