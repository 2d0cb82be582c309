/**
 * What the container parsers share.
 */

/** What a track holds, with the codec if it decides the media type. */
export interface Track {
  readonly holds: "sound" | "picture" | "other";
  readonly codec?: "opus";
}

/** A part of a container, as byte offsets from the beginning of the file. */
export interface Part {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Parts read on one level at most: more than any real file needs. */
export const MAX_PARTS = 10_000;
