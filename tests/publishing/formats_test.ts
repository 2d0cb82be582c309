import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/input/refused_error.ts";
import { memoryBytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType } from "../../lib/publishing/media_type.ts";
import { publishFile } from "../../lib/publishing/publish.ts";
import type { Kind } from "../../lib/storage/item.ts";
import { openLocal } from "../support/local_storage.ts";
import { needing, program } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes", program("ffmpeg"), program("ffprobe"));

const SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=1"];
const LONG_SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=9"];
const PICTURE = ["-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25:duration=1"];
const H264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"];
const VP9 = ["-c:v", "libvpx", "-b:v", "50k", "-c:a", "libopus"];
const THEORA = ["-c:v", "libtheora", "-c:a", "libvorbis"];
const MIXED = ["-map", "0", "-map", "1", "-c:a:0", "libvorbis", "-c:a:1", "libopus", "-f", "ogg"];
/** A picture that belongs to sound, like an album cover. */
const COVER = [
  ...["-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25:duration=0.04"],
  ...["-c:v", "mjpeg", "-disposition:v", "attached_pic"],
];

/** File name, how to make it, its type, and a codec that must be found in it. */
const FORMATS: [name: string, args: string[], type: string, codec: string, kind?: Kind][] = [
  ["a.mp3", [...SOUND, "-c:a", "libmp3lame"], "audio/mpeg", "mp3"],
  ["a.mp2", [...SOUND], "audio/mpeg", "mp2"],
  ["a.ogg", [...SOUND, "-c:a", "libopus"], "audio/ogg; codecs=opus", "opus"],
  ["a.oga", [...SOUND, "-c:a", "libvorbis", "-f", "ogg"], "audio/ogg", "vorbis"],
  ["mixed.oga", [...SOUND, ...SOUND, ...MIXED], "audio/ogg", "opus"],
  ["a.ogv", [...PICTURE, ...SOUND, ...THEORA], "video/ogg", "theora"],
  ["a.flac", [...SOUND], "audio/flac", "flac"],
  ["tagged.flac", [...SOUND], "audio/flac", "flac"],
  ["cover.flac", [...SOUND, ...COVER], "audio/flac", "flac"],
  ["a.wav", [...SOUND], "audio/wav", "pcm_s16le"],
  ["a.aiff", [...SOUND], "audio/aiff", "pcm_s16be"],
  ["a.aac", [...SOUND, "-c:a", "aac"], "audio/aac", "aac"],
  ["tagged.aac", [...SOUND, "-c:a", "aac"], "audio/aac", "aac"],
  ["a.m4a", [...SOUND, "-c:a", "aac"], "audio/mp4", "aac"],
  ["cover.m4a", [...SOUND, ...COVER, "-c:a", "aac"], "audio/mp4", "aac"],
  ["isom.m4a", [...SOUND, "-c:a", "aac", "-brand", "isom"], "audio/mp4", "aac"],
  ["end.m4a", [...LONG_SOUND, "-c:a", "alac", "-brand", "isom"], "audio/mp4", "alac"],
  ["parts.m4a", [...SOUND, "-c:a", "aac", "-movflags", "+empty_moov"], "audio/mp4", "aac"],
  ["a.mp4", [...PICTURE, ...SOUND, ...H264], "video/mp4", "h264"],
  ["chapters.mp4", [...PICTURE, ...SOUND, ...H264], "audio/mp4", "aac"],
  ["silent.mp4", [...PICTURE, ...H264], "video/mp4", "h264"],
  ["picture.m4a", [...PICTURE, ...SOUND, ...H264], "video/mp4", "h264"], // contrary to its brand
  ["a.mov", [...PICTURE, ...SOUND, ...H264], "video/quicktime", "h264"],
  ["sound.mov", [...SOUND, "-c:a", "aac"], "video/quicktime", "aac", "audio"],
  ["a.3gp", [...PICTURE, ...SOUND, "-c:v", "h263", "-c:a", "aac"], "video/3gpp", "h263"],
  ["sound.3gp", [...SOUND, "-c:a", "aac"], "audio/3gpp", "aac"],
  ["a.webm", [...PICTURE, ...SOUND, ...VP9], "video/webm", "vp8"],
  ["sound.weba", [...SOUND, "-c:a", "libopus", "-f", "webm"], "audio/webm", "opus"],
  ["live.webm", [...SOUND, "-c:a", "libopus", "-live", "1"], "audio/webm", "opus"],
  ["a.mkv", [...PICTURE, ...SOUND, ...H264], "video/x-matroska", "h264"],
  ["a.mka", [...SOUND, "-c:a", "flac"], "audio/x-matroska", "flac"],
  ["a.mpg", [...PICTURE, ...SOUND, "-f", "mpeg"], "video/mpeg", "mpeg1video"],
  ["a.vob", [...PICTURE, ...SOUND], "video/mpeg", "mpeg2video"],
  ["a.ts", [...PICTURE, ...SOUND, ...H264], "video/mp2t", "h264"],
  ["a.avi", [...PICTURE, ...SOUND], "video/vnd.avi", "mpeg4"],
  ["a.flv", [...PICTURE, ...SOUND, "-c:a", "aac"], "video/x-flv", "flv1"],
];

/** An ID3v2.4 tag longer than what is read to detect a format; its size has seven bits per byte. */
const LONG_TAG = new Uint8Array(10 + (6 << 14));
LONG_TAG.set([0x49, 0x44, 0x33, 4, 0, 0, 0, 6, 0, 0]);

/** Marks the first track as not enabled: that of the pictures is the picture of chapters. */
function disable(mp4: Uint8Array): Uint8Array {
  const at = new TextDecoder("latin1").decode(mp4).indexOf("tkhd");
  mp4[at + 7] = 0; // the flags, after the version
  return mp4;
}

async function run(command: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args }).output();
  assertEquals(code, 0, `${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

/** What ffprobe finds in a file: video, if it has pictures other than a cover. */
async function probeKind(path: string): Promise<Kind> {
  const { streams } = JSON.parse(
    await run("ffprobe", ["-v", "error", "-show_streams", "-of", "json", path]),
  ) as { streams: { codec_type: string; disposition: { attached_pic: number } }[] };
  const isPicture = streams.some(({ codec_type, disposition }) =>
    codec_type === "video" && disposition.attached_pic === 0
  );
  return isPicture ? "video" : "audio";
}

// Makes the files, and reads what is served, with Debian's ffmpeg.
test(`${FORMATS.length} formats are published, described and served with the type that ffprobe finds`, async (t) => {
  await using subject = await openLocal();
  await using server = await ServerProcess.start({}, subject.folder);
  for (const [name, args, type, codec, kind = type.split("/")[0]] of FORMATS) {
    await t.step(name, async () => {
      const path = `${subject.folder}/${name}`;
      await run("ffmpeg", ["-v", "error", ...args, path]);
      if (name.startsWith("chapters.")) {
        await Deno.writeFile(path, disable(await Deno.readFile(path)));
      } else if (name.startsWith("tagged.")) {
        await Deno.writeFile(path, new Uint8Array([...LONG_TAG, ...await Deno.readFile(path)]));
      }
      const item = await publishFile(subject.storage, path);
      const probed = name.startsWith("chapters.") ? "audio" : await probeKind(path);
      assertEquals([item.type, item.kind], [type, probed]);
      assertEquals(item.kind, kind);

      const url = `${server.origin}/media/${item.token}`;
      const probe = await run("ffprobe", [
        ...["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", url],
      ]);
      assert(probe.split(/[\n,]/).includes(codec), probe);

      const get = await fetch(url);
      assertEquals(await get.bytes(), await Deno.readFile(path));
      assertEquals(get.headers.get("content-type"), type);
    });
  }

  const detect = async (name: string, stated: Kind) => {
    const content = memoryBytes(await Deno.readFile(`${subject.folder}/${name}`));
    return await detectMediaType(name, content, { kind: stated });
  };
  await t.step("the other kind can be stated only of what holds both", async () => {
    assertEquals(await detect("a.mp4", "audio"), { kind: "audio", type: "audio/mp4" });
    for (
      const [name, kind, message] of [
        ["silent.mp4", "audio", "is video/mp4, so its kind cannot be audio (it has no sound)"],
        [
          "a.ogg",
          "video",
          "is audio/ogg; codecs=opus, so its kind cannot be video (it has no picture)",
        ],
      ] as const
    ) {
      await assertRejects(() => detect(name, kind), RefusedError, `"${name}" ${message}`);
    }
  });
  await t.step("damaged files are read to an end, or refused", async () => {
    let seed = 1;
    const next = (below: number) => (seed = seed * 48_271 % 0x7fff_ffff) % below;
    for (const name of ["a.mp4", "parts.m4a", "a.webm", "a.ogv", "a.3gp", "cover.flac"]) {
      const whole = await Deno.readFile(`${subject.folder}/${name}`);
      for (let round = 0; round < 100; round++) {
        const damaged = whole.slice(0, round % 2 ? undefined : next(whole.length));
        for (let count = 0; count < 20; count++) {
          damaged[next(Math.min(4096, damaged.length))] = next(256);
        }
        try {
          await detectMediaType(name, memoryBytes(damaged), {});
        } catch (error) {
          assertInstanceOf(error, RefusedError);
        }
      }
    }
  });
});
