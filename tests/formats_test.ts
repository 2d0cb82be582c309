import { assert, assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { publishFile } from "../lib/cli/publish.ts";
import { openLocal } from "./support/local_storage.ts";
import { ServerProcess } from "./support/server.ts";

const SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=1"];
const PICTURE = ["-f", "lavfi", "-i", "testsrc2=size=64x36:rate=10:duration=1"];
const H264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"];
const VP9 = ["-c:v", "libvpx", "-b:v", "50k", "-c:a", "libopus"];

/** File name, how to make it, what it is, and a codec that has to be found in it. */
const FORMATS: [name: string, args: string[], type: string, codec: string][] = [
  ["a.mp3", [...SOUND, "-c:a", "libmp3lame"], "audio/mpeg", "mp3"],
  ["a.ogg", [...SOUND, "-c:a", "libopus"], "audio/ogg; codecs=opus", "opus"],
  ["a.flac", [...SOUND], "audio/flac", "flac"],
  ["a.wav", [...SOUND], "audio/wav", "pcm_s16le"],
  ["a.m4a", [...SOUND, "-c:a", "aac"], "audio/mp4", "aac"],
  ["a.aac", [...SOUND, "-c:a", "aac"], "audio/aac", "aac"],
  ["a.mp4", [...PICTURE, ...SOUND, ...H264], "video/mp4", "h264"],
  ["a.mov", [...PICTURE, ...SOUND, ...H264], "video/quicktime", "h264"],
  ["a.webm", [...PICTURE, ...SOUND, ...VP9], "video/webm", "vp8"],
  ["a.mkv", [...PICTURE, ...SOUND, ...H264], "video/x-matroska", "h264"],
];

async function run(command: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args }).output();
  assertEquals(code, 0, `${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

async function isInstalled(command: string): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args: ["-version"] }).output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test({
  name: "ten formats are published, described and served so that ffprobe reads them",
  // Makes its files, and reads what is served, with Debian's ffmpeg.
  ignore: !await isInstalled("ffprobe"),
  async fn(t) {
    await using subject = await openLocal();
    await using server = await ServerProcess.start({}, subject.folder);
    for (const [name, args, type, codec] of FORMATS) {
      await t.step(name, async () => {
        const path = `${subject.folder}/${name}`;
        await run("ffmpeg", ["-v", "error", ...args, path]);
        const item = await publishFile(subject.storage, path);
        assertEquals([item.type, item.kind], [type, type.split("/")[0] as "audio" | "video"]);

        const url = `${server.origin}/media/${item.token}`;
        const probe = await run("ffprobe", [
          ...["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", url],
        ]);
        assert(probe.split("\n").includes(codec), probe);

        const get = await fetch(url);
        const content = await get.bytes();
        assertEquals(content, await Deno.readFile(path));
        const digest = createHash("sha256").update(content);
        assertEquals(get.headers.get("repr-digest"), `sha-256=:${digest.copy().digest("base64")}:`);
        assertEquals(get.headers.get("etag"), `"${digest.digest("hex")}"`);
        const head = await fetch(url, { method: "HEAD" });
        for (const [field, value] of get.headers) {
          if (field !== "date") assertEquals(head.headers.get(field), value, field);
        }
        assertEquals(get.headers.get("content-type"), type);
      });
    }
  },
});
