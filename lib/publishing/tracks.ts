/** What containers hold: MP4, 3GP and QuickTime; Matroska and WebM; Ogg. */

import { type Bytes, WindowedBlob } from "./bytes.ts";

export interface Tracks {
  readonly hasSound: boolean;
  readonly hasPicture: boolean;
  /** Whether all sound in an Ogg file is Opus, which its media type names (RFC 7845 §9). */
  readonly isOpus: boolean;
}

const UNKNOWN: Tracks = { hasSound: false, hasPicture: false, isOpus: false };

/**
 * Determines what a container holds.
 *
 * @param type Its media type, which chooses the parser.
 * @returns Neither sound nor picture if that cannot be determined.
 */
export async function findTracks(content: Bytes, type: string): Promise<Tracks> {
  // The parser of MP4 reads 3GP, too, but is not chosen for it.
  const blob = new WindowedBlob(content, type.replace(/3gpp2?$/, "mp4"));
  // Damaged content makes the parsers throw anything, and they conceal that reading failed.
  const tracks = await parse(blob).catch(() => UNKNOWN);
  if (blob.failure !== undefined) throw blob.failure;
  return tracks;
}

async function parse(blob: Blob): Promise<Tracks> {
  const { parseBlob, TrackType } = await import("music-metadata");
  const { format } = await parseBlob(blob, { skipCovers: true });
  const { hasAudio: hasSound = false, hasVideo = false, trackInfo } = format;
  const pictures = trackInfo.filter(({ type }) => type === TrackType.video);
  // The pictures of chapters are a track that is not enabled.
  const isShown = pictures.length === 0 || pictures.some(({ flagEnabled = true }) => flagEnabled);
  const sounds = trackInfo.filter(({ type }) => type === TrackType.audio);
  return {
    hasSound,
    hasPicture: hasVideo && (isShown || !hasSound),
    isOpus: sounds.every(({ codecName }) => codecName === "Opus"),
  };
}
