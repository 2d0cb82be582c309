/** Files of many formats, made by Debian's ffmpeg and espeak-ng. */

import { mustRun } from "../support/run.ts";

/** A format: a file's name, how ffmpeg makes it, and the media type that is detected. */
type Format = readonly [name: string, args: readonly string[], type: string];

const lavfi = (graph: string) => ["-f", "lavfi", "-i", graph];
/** A spoken sentence, one of the files that `prepare()` makes, as are those below. */
const SPEECH = ["-i", "speech.wav"];
const SOUND = lavfi("sine=frequency=440:duration=1");
const LONG_SOUND = lavfi("sine=frequency=440:duration=9");
const PICTURE = lavfi("testsrc2=size=128x96:rate=25:duration=1");
/** A picture that belongs to sound, like an album cover. */
const COVER = [
  ...lavfi("testsrc2=size=128x96:rate=25:duration=0.04"),
  ...["-c:v", "mjpeg", "-disposition:v", "attached_pic"],
];
const SUBTITLES = ["-i", "subtitles.srt"];
const CHAPTERS = ["-i", "chapters.txt"];
const VIDEO = [...PICTURE, ...SOUND];

const AAC = ["-c:a", "aac"];
const OPUS = ["-c:a", "libopus"];
const H264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", ...AAC];
const VP8 = ["-c:v", "libvpx", "-b:v", "50k"];
const VP9 = ["-c:v", "libvpx-vp9", "-b:v", "50k", "-cpu-used", "8"];
const AV1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-b:v", "50k"];
const HEVC = ["-c:v", "libx265", "-x265-params", "log-level=error"];
const THEORA = ["-c:v", "libtheora"];
const VORBIS = ["-c:a", "libvorbis"];
const FRAGMENTS = ["-movflags", "+frag_keyframe+empty_moov+default_base_moof"];
const VCD = ["-ar", "44100", "-f", "vcd"];
const MIXED = ["-map", "0", "-map", "1", "-c:a:0", "libvorbis", "-c:a:1", "libopus"];

const SOUNDS: readonly Format[] = [
  ["a.mp3", [...SOUND, "-c:a", "libmp3lame"], "audio/mpeg"],
  ["speech.mp3", [...SPEECH, "-c:a", "libmp3lame", "-q:a", "9"], "audio/mpeg"],
  ["slow.mp3", [...SPEECH, "-ar", "8000", "-b:a", "8k"], "audio/mpeg"],
  ["plain.mp3", [...SOUND, "-write_xing", "0", "-id3v2_version", "0"], "audio/mpeg"],
  ["old-tag.mp3", [...SOUND, "-write_id3v1", "1", "-metadata", "title=A"], "audio/mpeg"],
  ["cover.mp3", [...SOUND, ...COVER, "-id3v2_version", "3"], "audio/mpeg"],
  ["tagged.mp3", [...SOUND], "audio/mpeg"],
  ["stray.mp3", [...SOUND], "audio/mpeg"],
  ["cut.mp3", [...SPEECH, "-id3v2_version", "0"], "audio/mpeg"],
  ["padded.mp3", [...SPEECH, "-id3v2_version", "0"], "audio/mpeg"],
  ["a.mp2", [...SOUND], "audio/mpeg"],
  ["lame.mp2", [...SPEECH, "-c:a", "libtwolame"], "audio/mpeg"],
  ["a.aac", [...SOUND, ...AAC], "audio/aac"],
  ["speech.aac", [...SPEECH, ...AAC], "audio/aac"],
  ["tagged.aac", [...SOUND, ...AAC], "audio/aac"],
  ["stray.aac", [...SOUND, ...AAC], "audio/aac"],
  ["cut.aac", [...SPEECH, ...AAC], "audio/aac"],
  ["a.flac", [...SOUND], "audio/flac"],
  ["speech.flac", [...SPEECH, "-sample_fmt", "s32"], "audio/flac"],
  ["tagged.flac", [...SOUND], "audio/flac"],
  ["cover.flac", [...SOUND, ...COVER], "audio/flac"],
  ["a.wav", [...SOUND], "audio/wav"],
  ["float.wav", [...SPEECH, "-c:a", "pcm_f32le"], "audio/wav"],
  ["surround.wav", [...SOUND, "-ac", "6", "-c:a", "pcm_s24le"], "audio/wav"],
  ["mulaw.wav", [...SPEECH, "-c:a", "pcm_mulaw"], "audio/wav"],
  ["adpcm.wav", [...SPEECH, "-c:a", "adpcm_ms"], "audio/wav"],
  ["rf64.wav", [...SOUND, "-rf64", "always"], "audio/wav"],
  ["a.au", [...SPEECH], "audio/basic"],
  ["a.aiff", [...SOUND], "audio/aiff"],
  ["float.aifc", [...SOUND, "-c:a", "pcm_f32be", "-f", "aiff"], "audio/aiff"],
  ["a.caf", [...SOUND], "audio/x-caf"],
  ["alac.caf", [...SPEECH, "-c:a", "alac"], "audio/x-caf"],
  ["a.wv", [...SOUND], "audio/wavpack"],
  ["a.ac3", [...SOUND], "audio/vnd.dolby.dd-raw"],
  ["a.eac3", [...SOUND], "audio/vnd.dolby.dd-raw"],
  ["a.voc", [...SPEECH], "audio/x-voc"],
  ["a.wma", [...SOUND, "-c:a", "wmav2"], "audio/x-ms-asf"],
];

const OGGS: readonly Format[] = [
  ["a.opus", [...SOUND, ...OPUS], "audio/ogg; codecs=opus"],
  ["a.ogg", [...SPEECH, ...OPUS], "audio/ogg; codecs=opus"],
  ["two.opus", [...SOUND, ...SOUND, "-map", "0", "-map", "1", ...OPUS], "audio/ogg; codecs=opus"],
  ["a.oga", [...SOUND, ...VORBIS], "audio/ogg"],
  ["speech.oga", [...SPEECH, ...VORBIS], "audio/ogg"],
  ["mixed.oga", [...SOUND, ...SOUND, ...MIXED], "audio/ogg"],
  ["flac.oga", [...SOUND, "-c:a", "flac"], "audio/ogg"],
  ["a.spx", [...SPEECH, "-c:a", "libspeex", "-f", "ogg"], "audio/ogg"],
  ["celt.ogg", [...SPEECH, "-c:a", "libspeex"], "audio/ogg"],
  ["a.ogv", [...VIDEO, ...THEORA, ...VORBIS], "video/ogg"],
  ["sound-first.ogv", [...VIDEO, "-map", "1", "-map", "0", ...THEORA, ...VORBIS], "video/ogg"],
  ["silent.ogv", [...PICTURE, ...THEORA], "video/ogg"],
  ["vp8.ogv", [...VIDEO, ...VP8, ...OPUS], "video/ogg"],
];

const MP4S: readonly Format[] = [
  ["a.m4a", [...SOUND, ...AAC], "audio/mp4"],
  ["speech.m4a", [...SPEECH, ...AAC], "audio/mp4"],
  ["a.m4b", [...SPEECH, ...AAC, "-f", "ipod"], "audio/mp4"],
  [
    "titles.m4b",
    [...LONG_SOUND, ...CHAPTERS, "-map_metadata", "1", ...AAC, "-b:a", "32k"],
    "audio/mp4",
  ],
  ["pictures.m4b", [...VIDEO, "-c:v", "mjpeg", "-q:v", "30", ...AAC, "-f", "mp4"], "audio/mp4"],
  ["cover.m4a", [...SOUND, ...COVER, ...AAC], "audio/mp4"],
  ["isom.m4a", [...SOUND, ...AAC, "-brand", "isom"], "audio/mp4"],
  ["end.m4a", [...LONG_SOUND, "-c:a", "alac", "-brand", "isom"], "audio/mp4"],
  ["parts.m4a", [...SOUND, ...AAC, "-movflags", "+empty_moov"], "audio/mp4"],
  ["fast.m4a", [...LONG_SOUND, ...AAC, "-b:a", "128k", "-movflags", "+faststart"], "audio/mp4"],
  ["old-tag.m4a", [...SOUND, ...AAC], "audio/mp4"],
  ["flac.mp4", [...SOUND, "-c:a", "flac", "-strict", "-2"], "audio/mp4"],
  ["opus.mp4", [...SOUND, ...OPUS], "audio/mp4"],
  ["mp3.mp4", [...SOUND, "-c:a", "libmp3lame"], "audio/mp4"],
  ["ac3.mp4", [...SOUND, "-c:a", "ac3"], "audio/mp4"],
  ["two.m4a", [...SOUND, ...SPEECH, "-map", "0", "-map", "1", ...AAC], "audio/mp4"],
  ["hinted.m4a", [...SOUND, ...AAC, "-f", "mp4", "-movflags", "+rtphint"], "audio/mp4"],
  ["a.mp4", [...VIDEO, ...H264], "video/mp4"],
  ["fast.mp4", [...VIDEO, ...H264, "-movflags", "+faststart"], "video/mp4"],
  ["fragments.mp4", [...VIDEO, ...H264, ...FRAGMENTS], "video/mp4"],
  ["dash.mp4", [...VIDEO, ...H264, "-movflags", "+dash+delay_moov"], "video/mp4"],
  ["cmaf.mp4", [...PICTURE, ...H264, "-movflags", "+cmaf"], "video/mp4"],
  ["disabled.mp4", [...VIDEO, ...H264], "video/mp4"],
  ["silent.mp4", [...PICTURE, ...H264], "video/mp4"],
  ["picture.m4a", [...VIDEO, ...H264], "video/mp4"], // contrary to its brand
  ["a.m4v", [...VIDEO, ...H264, "-f", "ipod"], "video/mp4"],
  ["a.f4v", [...VIDEO, ...H264], "video/mp4"],
  ["sound-first.mp4", [...VIDEO, "-map", "1", "-map", "0", ...H264], "video/mp4"],
  [
    "two-languages.mp4",
    [...VIDEO, ...SPEECH, ...H264, "-map", "0", "-map", "1", "-map", "2"],
    "video/mp4",
  ],
  ["subtitles.mp4", [...VIDEO, ...SUBTITLES, ...H264, "-c:s", "mov_text"], "video/mp4"],
  ["chapters.mp4", [...VIDEO, ...CHAPTERS, "-map_metadata", "2", ...H264], "video/mp4"],
  ["hevc.mp4", [...PICTURE, ...HEVC], "video/mp4"],
  ["av1.mp4", [...VIDEO, ...AV1, ...OPUS], "video/mp4"],
  ["vp9.mp4", [...VIDEO, ...VP9, ...OPUS], "video/mp4"],
  ["mpeg4.mp4", [...VIDEO, "-c:v", "mpeg4", "-b:v", "50k", ...AAC], "video/mp4"],
  ["a.mov", [...VIDEO, ...H264], "video/quicktime"],
  ["fast.mov", [...VIDEO, ...H264, "-movflags", "+faststart"], "video/quicktime"],
  ["prores.mov", [...PICTURE, "-c:v", "prores"], "video/quicktime"],
  ["timecode.mov", [...PICTURE, "-timecode", "00:00:00:00", ...H264], "video/quicktime"],
  ["sound.mov", [...SOUND, ...AAC], "video/quicktime"],
  ["pcm.mov", [...SPEECH, "-c:a", "pcm_s16le", "-ar", "8000"], "video/quicktime"],
  ["a.3gp", [...VIDEO, "-c:v", "h263", "-b:v", "50k", ...AAC], "video/3gpp"],
  ["sound.3gp", [...SOUND, ...AAC], "audio/3gpp"],
  ["a.3g2", [...VIDEO, "-c:v", "h263", "-b:v", "50k", ...AAC], "video/3gpp2"],
  ["sound.3g2", [...SPEECH, ...AAC], "audio/3gpp2"],
];

const MATROSKAS: readonly Format[] = [
  ["a.webm", [...VIDEO, ...VP8, ...OPUS], "video/webm"],
  ["vp9.webm", [...VIDEO, ...VP9, ...VORBIS], "video/webm"],
  ["av1.webm", [...VIDEO, ...AV1, ...OPUS], "video/webm"],
  ["silent.webm", [...PICTURE, ...VP8], "video/webm"],
  ["sound-first.webm", [...VIDEO, "-map", "1", "-map", "0", ...VP8, ...OPUS], "video/webm"],
  ["front.webm", [...VIDEO, ...VP8, ...OPUS, "-cues_to_front", "1"], "video/webm"],
  ["sound.weba", [...SOUND, ...OPUS, "-f", "webm"], "audio/webm"],
  ["speech.weba", [...SPEECH, ...VORBIS, "-f", "webm"], "audio/webm"],
  ["live.webm", [...SOUND, ...OPUS, "-live", "1"], "audio/webm"],
  ["live-picture.webm", [...VIDEO, ...VP8, ...OPUS, "-live", "1"], "video/webm"],
  ["a.mkv", [...VIDEO, ...H264], "video/x-matroska"],
  ["ffv1.mkv", [...PICTURE, "-c:v", "ffv1"], "video/x-matroska"],
  ["hevc.mkv", [...VIDEO, ...HEVC, "-c:a", "flac"], "video/x-matroska"],
  ["subtitles.mkv", [...VIDEO, ...SUBTITLES, ...H264], "video/x-matroska"],
  ["chapters.mkv", [...VIDEO, ...CHAPTERS, "-map_metadata", "2", ...H264], "video/x-matroska"],
  ["a.mka", [...SOUND, "-c:a", "flac"], "audio/x-matroska"],
  ["lyrics.mka", [...SPEECH, ...SUBTITLES, ...OPUS, "-f", "matroska"], "audio/x-matroska"],
  ["live.mka", [...SPEECH, ...VORBIS, "-f", "matroska", "-live", "1"], "audio/x-matroska"],
];

const PICTURES: readonly Format[] = [
  ["a.mpg", [...VIDEO, "-f", "mpeg"], "video/mpeg"],
  ["a.vob", [...VIDEO], "video/mpeg"],
  ["mpeg2.mpg", [...VIDEO, "-c:v", "mpeg2video", "-f", "svcd"], "video/mpeg"],
  ["a.m2v", [...PICTURE, "-f", "mpeg2video"], "video/mpeg"],
  ["sound.vob", [...SOUND], "video/mpeg"],
  ["ac3.vob", [...SPEECH, "-c:a", "ac3"], "video/mpeg"],
  ["dvd.vob", [...SOUND, "-ar", "48000", "-f", "dvd"], "video/mpeg"],
  ["sound-first.vob", [...VIDEO, "-map", "1", "-map", "0"], "video/mpeg"],
  ["sound-first.mpg", [...VIDEO, ...VCD, "-map", "1", "-map", "0"], "video/mpeg"],
  ["a.ts", [...VIDEO, ...H264], "video/mp2t"],
  ["mpeg2.ts", [...VIDEO, "-c:v", "mpeg2video"], "video/mp2t"],
  ["a.m2ts", [...VIDEO, ...H264], "video/mp2t"],
  ["sound.ts", [...SOUND, ...AAC], "video/mp2t"],
  ["speech.ts", [...SPEECH, "-c:a", "libmp3lame"], "video/mp2t"],
  ["ac3.ts", [...SOUND, "-c:a", "ac3"], "video/mp2t"],
  ["dvb.ts", [...SOUND, "-c:a", "ac3", "-mpegts_flags", "system_b"], "video/mp2t"],
  ["latm.ts", [...SOUND, ...AAC, "-mpegts_flags", "latm"], "video/mp2t"],
  ["opus.ts", [...SOUND, ...OPUS], "video/mp2t"],
  ["sound.m2ts", [...SOUND, "-ar", "48000", "-c:a", "pcm_bluray"], "video/mp2t"],
  ["sound-first.ts", [...VIDEO, "-map", "1", "-map", "0", ...H264], "video/mp2t"],
  [
    "programs.ts",
    [...VIDEO, "-map", "1", "-map", "0", "-program", "st=0", "-program", "st=1", ...H264],
    "video/mp2t",
  ],
  ["a.avi", [...VIDEO], "video/vnd.avi"],
  ["mjpeg.avi", [...PICTURE, "-c:v", "mjpeg"], "video/vnd.avi"],
  ["sound.avi", [...SOUND, "-c:a", "libmp3lame"], "video/vnd.avi"],
  ["h264.avi", [...VIDEO, ...H264, "-c:a", "libmp3lame"], "video/vnd.avi"],
  ["a.flv", [...VIDEO, ...AAC], "video/x-flv"],
  ["h264.flv", [...VIDEO, ...H264], "video/x-flv"],
  ["sound.flv", [...SOUND, ...AAC], "video/x-flv"],
  ["a.wmv", [...VIDEO, "-c:v", "wmv2", "-c:a", "wmav2"], "video/x-ms-asf"],
  ["sound-first.wmv", [...VIDEO, "-map", "1", "-map", "0"], "video/x-ms-asf"],
  ["silent.wmv", [...PICTURE], "video/x-ms-asf"],
  [
    "two-sounds.asf",
    [...SPEECH, ...VIDEO, "-map", "0", "-map", "2", "-map", "1"],
    "video/x-ms-asf",
  ],
];

const repeated = (
  times: number,
  file: string,
) => ["-stream_loop", String(times - 1), "-i", file, "-c", "copy"];

/** Files whose description is long, or whose content is. */
const LONG: readonly Format[] = [
  ["twenty-minutes.mp4", [...repeated(20, "minute.mp4"), ...FRAGMENTS], "video/mp4"],
  ["two-megabit.mp4", [...repeated(9, "dense.mp4"), ...FRAGMENTS], "video/mp4"],
  ["podcast.m4a", [...repeated(20, "silence.aac"), "-movflags", "+faststart"], "audio/mp4"],
  ["thirty-hours.m4a", [...repeated(1_800, "silence.aac")], "audio/mp4"],
];

export const FORMATS: readonly Format[] = [
  ...SOUNDS,
  ...OGGS,
  ...MP4S,
  ...MATROSKAS,
  ...PICTURES,
  ...LONG,
];

/** An ID3v2.4 tag longer than what is read to detect a format; its size has seven bits per byte. */
export const LONG_TAG = new Uint8Array(10 + (6 << 14));
LONG_TAG.set([0x49, 0x44, 0x33, 4, 0, 0, 0, 6, 0, 0]);

/** Bytes that do not belong to the sound before which they stand. */
const STRAY = new TextEncoder().encode("Ten bytes\n");

/** What follows the sound in files of many old programs: an ID3v1 tag. */
const OLD_TAG = new TextEncoder().encode(`TAG${"A title of thirty characters!!".padEnd(125)}`);

/** Changes that ffmpeg cannot make, by the name of the file. */
const CHANGES: Readonly<Record<string, (file: Uint8Array) => Uint8Array>> = {
  "tagged.mp3": (file) => joined(LONG_TAG, file),
  "tagged.aac": (file) => joined(LONG_TAG, file),
  "tagged.flac": (file) => joined(LONG_TAG, file),
  "stray.mp3": (file) => joined(STRAY, file),
  "stray.aac": (file) => joined(STRAY, file),
  "cut.mp3": (file) => file.subarray(50),
  "cut.aac": (file) => file.subarray(50),
  "padded.mp3": (file) => joined(new Uint8Array(9_000), file),
  "old-tag.m4a": (file) => joined(file, OLD_TAG),
  "celt.ogg": (file) => replaced(file, "Speex   ", "CELT    "),
  "disabled.mp4": withoutFlags,
  "pictures.m4b": withPicturesOfChapters,
};

function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

/** Changes the name of a codec that ffmpeg cannot write. */
function replaced(file: Uint8Array, text: string, other: string): Uint8Array {
  file.set(new TextEncoder().encode(other), textOf(file).indexOf(text));
  return file;
}

const textOf = (file: Uint8Array) => new TextDecoder("latin1").decode(file);

/** Clears the flags of all tracks, as some programs leave them. */
function withoutFlags(mp4: Uint8Array): Uint8Array {
  for (const { index } of textOf(mp4).matchAll(/tkhd/g)) mp4.fill(0, index + 5, index + 8);
  return mp4;
}

/** Makes the pictures of an MP4, its first track, those of the chapters of its sound. */
function withPicturesOfChapters(mp4: Uint8Array): Uint8Array {
  const [moov, sound] = [textOf(mp4).indexOf("moov"), textOf(mp4).lastIndexOf("trak")];
  const reference = new Uint8Array([0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1]);
  reference.set(new TextEncoder().encode("tref"), 4);
  reference.set(new TextEncoder().encode("chap"), 12);
  const view = new DataView(mp4.buffer, mp4.byteOffset);
  for (const at of [moov, sound]) view.setUint32(at - 4, view.getUint32(at - 4) + reference.length);
  return joined(mp4.subarray(0, sound + 4), reference, mp4.subarray(sound + 4));
}

/** Makes in a folder what the formats are made of. */
export async function prepare(folder: string): Promise<void> {
  await mustRun("espeak-ng", ["-w", `${folder}/speech.wav`, "Any file that a publisher has."]);
  const cue = "1\n00:00:00,100 --> 00:00:00,900\nHear, hear\n";
  await Deno.writeTextFile(`${folder}/subtitles.srt`, cue);
  const chapter = (number: number) =>
    `[CHAPTER]\nTIMEBASE=1/10\nSTART=${4 * number}\nEND=${4 * number + 4}\ntitle=${number}\n`;
  await Deno.writeTextFile(`${folder}/chapters.txt`, `;FFMETADATA1\n${chapter(0)}${chapter(1)}`);
  const video = (seconds: number, rate: string) => [
    ...lavfi(`testsrc2=size=320x240:rate=10:duration=${seconds}`),
    ...lavfi(`sine=duration=${seconds}`),
    ...["-c:v", "mpeg4", "-b:v", rate, "-minrate", rate, "-maxrate", rate],
    ...["-bufsize", "4M", ...AAC],
  ];
  const files = [
    ["minute.mp4", ...video(60, "150k")],
    ["dense.mp4", ...video(20, "2M")],
    ["silence.aac", ...lavfi("anullsrc=r=44100:cl=mono"), "-t", "60", ...AAC],
  ];
  for (const [name = "", ...args] of files) {
    await mustRun("ffmpeg", ["-v", "error", "-y", ...args, name], { cwd: folder });
  }
}

/** Returns the arguments of a format that name its inputs. */
function inputsOf([, args]: Format): readonly string[] {
  const last = args.lastIndexOf("-i");
  return args.slice(0, last + 2);
}

/**
 * Makes a file of each format in a folder. Those that are made of the same are made by one process,
 * because starting it costs more than encoding a second.
 *
 * @param source The folder that `prepare()` has filled.
 */
export async function makeAll(folder: string, source: string): Promise<void> {
  const alike = Map.groupBy(FORMATS, (format) => inputsOf(format).join(" "));
  for (const formats of alike.values()) {
    const inputs = inputsOf(formats[0] as Format);
    const outputs = formats.flatMap(([name, args]) => [
      ...args.slice(inputs.length),
      `${folder}/${name}`,
    ]);
    await mustRun("ffmpeg", ["-v", "error", "-y", ...inputs, ...outputs], { cwd: source });
  }
  for (const [name, change] of Object.entries(CHANGES)) {
    const path = `${folder}/${name}`;
    await Deno.writeFile(path, change(await Deno.readFile(path)));
  }
}
