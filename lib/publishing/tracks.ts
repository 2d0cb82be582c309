/** What containers hold: MP4, 3GP and QuickTime; Matroska and WebM; Ogg. */

import type { Bytes, WindowedBytes } from "./bytes.ts";

/** What a container holds. */
export interface Tracks {
  readonly hasSound: boolean;
  readonly hasPicture: boolean;
  /** Whether all sound in an Ogg file is Opus, which its media type names (RFC 7845 §9). */
  readonly isOpus: boolean;
}

const UNKNOWN: Tracks = { hasSound: false, hasPicture: false, isOpus: false };

/**
 * Finds out what a container holds.
 *
 * @param type Its media type, which chooses the parser.
 * @returns Neither sound nor picture where that cannot be told.
 */
export async function findTracks(content: WindowedBytes, type: string): Promise<Tracks> {
  // Damaged content makes the parsers throw anything, and they conceal that reading failed.
  const tracks = await parse(content, type).catch(() => UNKNOWN);
  if (content.failure !== undefined) throw content.failure;
  return tracks;
}

async function parse(content: Bytes, type: string): Promise<Tracks> {
  const { parseBlob, TrackType } = await import("music-metadata");
  // The parser of MP4 reads 3GP, too, but is not chosen for it.
  const blob = new ContentBlob(content, type.replace(/3gpp2?$/, "mp4"));
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

/** Content as a `Blob`, read only where the parsers look. */
class ContentBlob extends Blob {
  readonly #content: Bytes;

  constructor(content: Bytes, type: string) {
    super([], { type });
    this.#content = content;
  }

  override get size(): number {
    return this.#content.size;
  }

  override slice(start: number, end: number): Blob {
    const part = new Blob();
    part.arrayBuffer = async () => {
      const bytes = await this.#content.read(start, end - start);
      return bytes.slice().buffer; // whose beginning is that of the bytes
    };
    return part;
  }
}
