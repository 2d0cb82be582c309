import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/input/refused_error.ts";
import { memoryBytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType } from "../../lib/publishing/media_type.ts";
import { publishFile } from "../../lib/publishing/publish.ts";
import { publishUrl } from "../../lib/publishing/publish_url.ts";
import type { Kind } from "../../lib/storage/item.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { openMemory } from "../support/memory_storage.ts";
import { Origin } from "../support/origin.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";
import { FORMATS, make, prepare, run } from "./formats.ts";
import { HOSTILE } from "./hostile.ts";

const NEEDS = ["processes", program("ffmpeg"), program("ffprobe"), program("espeak-ng")] as const;
const test = needing(...NEEDS);

/** The folder with a file of each format. */
const files = shared(NEEDS, async () => {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  const sources = await Deno.makeTempDir({ prefix: "media-head-" });
  await prepare(sources);
  for (const format of FORMATS) await make(format, folder, sources);
  await Deno.remove(sources, { recursive: true });
  return { folder, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
});

/** QuickTime has no type for sound. */
const SOUND_OF_QUICKTIME = ["sound.mov", "pcm.mov"];

function kindOf(name: string, type: string): Kind {
  return SOUND_OF_QUICKTIME.includes(name) ? "audio" : type.split("/")[0] as Kind;
}

/** What ffprobe finds in a file or at a URL: it is a video if it has pictures other than a cover. */
async function probe(place: string): Promise<{ kind: Kind; codecs: string[] }> {
  const { streams } = JSON.parse(
    await run("ffprobe", ["-v", "error", "-show_streams", "-of", "json", place]),
  ) as {
    streams: {
      codec_type: string;
      codec_name: string;
      disposition: { attached_pic: number };
    }[];
  };
  const isPicture = streams.some(({ codec_type, disposition }) =>
    codec_type === "video" && disposition.attached_pic === 0
  );
  return {
    kind: isPicture ? "video" : "audio",
    codecs: streams.map(({ codec_name = "" }) => codec_name),
  };
}

test(`${FORMATS.length} formats are published, described and served with the type that ffprobe finds`, async (t) => {
  await using subject = await openLocal();
  await using server = await ServerProcess.start({}, subject.folder);
  for (const [name, , type] of FORMATS) {
    await t.step(name, async () => {
      const path = `${files().folder}/${name}`;
      const item = await publishFile(subject.storage, path);
      assertEquals([item.type, item.kind], [type, kindOf(name, type)]);

      const url = `${server.origin}/media/${item.token}`;
      if (name !== "celt.ogg") { // which ffprobe does not know
        const [probed, served] = await Promise.all([probe(path), probe(url)]);
        assertEquals(served, probed);
        if (name !== "pictures.m4b") assertEquals(item.kind, probed.kind); // it takes any picture
      }

      const get = await fetch(url);
      assertEquals(await get.bytes(), await Deno.readFile(path));
      assertEquals(get.headers.get("content-type"), type);
    });
  }
});

test(`${FORMATS.length} formats are published in a folder`, () =>
  inFolder(async (folder) => {
    const { code, stdout, stderr } = await media(folder, ["publish", "--json", files().folder]);
    assertEquals([code, stderr], [
      0,
      `Published ${FORMATS.length}, skipped 0 (already published), refused 0\n`,
    ]);
    const outcomes = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    assertEquals(
      outcomes.map(({ name, type, kind }) => [name, type, kind]),
      FORMATS.map(([name, , type]) => [name, type, kindOf(name, type)])
        .toSorted(([a = ""], [b = ""]) => a < b ? -1 : 1),
    );
  }));

/** Their tracks are described after the first 64 kB. */
const OUT_OF_REACH = ["end.m4a", "prores.mov", "thirty-hours.m4a"];

test(`${FORMATS.length} formats are published at URLs without a type, with ranges and without`, async (t) => {
  await using subject = await openMemory();
  let hasRanges = true;
  await using origin = new Origin(async ({ url, headers }) => {
    const path = `${files().folder}${new URL(url).pathname}`;
    using file = await Deno.open(path);
    const { size } = await file.stat();
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.get("range") ?? "") ?? [];
    const type = { "Content-Type": "application/octet-stream" };
    if (first === undefined || !hasRanges) {
      return new Response(await Deno.readFile(path), { headers: type });
    }
    const part = new Uint8Array(Math.min(Number(last) + 1, size) - Number(first));
    await file.seek(Number(first), Deno.SeekMode.Start);
    let done = 0;
    while (done < part.length) done += await file.read(part.subarray(done)) ?? Infinity;
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${size}`;
    return new Response(part, { status: 206, headers: { ...type, "Content-Range": range } });
  });
  for (hasRanges of [true, false]) {
    for (const [name, , type] of FORMATS) {
      await t.step(`${name}, ${hasRanges ? "with" : "without"} ranges`, async () => {
        const publishing = publishUrl(subject.storage, origin.url(`/${name}`));
        if (OUT_OF_REACH.includes(name)) {
          const { message } = await assertRejects(() => publishing, RefusedError);
          assert(
            message.endsWith("it is unknown whether it is audio or video; state it with --kind"),
          );
          return;
        }
        const { kind, length } = await publishing;
        const { size } = await Deno.stat(`${files().folder}/${name}`);
        assertEquals([kind, length], [kindOf(name, type), size]);
      });
    }
  }
});

test("the publisher's kind overrides what was detected, with the container's type for it", async () => {
  const rows: [name: string, kind: Kind, type: string][] = [
    ["a.mp4", "audio", "audio/mp4"],
    ["silent.mp4", "audio", "audio/mp4"],
    ["a.m4a", "video", "video/mp4"],
    ["a.3gp", "audio", "audio/3gpp"],
    ["a.mov", "audio", "video/quicktime"],
    ["a.mkv", "audio", "audio/x-matroska"],
    ["sound.weba", "video", "video/webm"],
    ["celt.ogg", "audio", "audio/ogg"],
    ["a.opus", "video", "video/ogg"],
    ["sound-first.wmv", "audio", "audio/x-ms-asf"],
    ["a.wma", "video", "video/x-ms-asf"],
    ["a.ts", "audio", "video/mp2t"],
    ["a.avi", "audio", "video/vnd.avi"],
    ["a.mp3", "video", "audio/mpeg"],
  ];
  for (const [name, kind, type] of rows) {
    const content = memoryBytes(await Deno.readFile(`${files().folder}/${name}`));
    assertEquals(await detectMediaType(name, content, { kind }), { kind, type }, name);
  }
});

/** FILES=20000 makes it a long run, which prints the file of each format that took longest. */
test("damaged files are detected or refused", async () => {
  const count = Number(Deno.env.get("FILES") ?? 1_000);
  const good = FORMATS.map(([name]) =>
    [name, Deno.readFileSync(`${files().folder}/${name}`)] as const
  );
  const hostile = Object.entries(HOSTILE).map(([name, make]) => [name, make()] as const);
  const wholes = [...good, ...hostile].map(([name, whole]) =>
    [name, whole.subarray(0, 2 ** 20)] as const
  );
  const worst = new Map<string, { name: string; number: number; milliseconds: number }>();
  let seed = 1;
  const next = (below: number) => (seed = seed * 48_271 % 0x7fff_ffff) % below;
  for (let number = 0; number < count; number++) {
    const [name, whole] = wholes[number % wholes.length] as typeof wholes[number];
    const damaged = new Uint8Array(whole.subarray(0, next(3) ? undefined : next(whole.length)));
    for (let changes = next(20); changes > 0; changes--) {
      const at = next(Math.min(next(2) ? 4096 : 256, damaged.length + 1));
      if (next(4)) damaged[at] = next(256);
      else damaged.fill(next(2) * 255, at, at + 4); // a length, as long or as short as can be
    }
    const start = performance.now();
    await detectMediaType(name, memoryBytes(damaged), {})
      .catch((error) => assertInstanceOf(error, RefusedError, `file ${number}`));
    const milliseconds = performance.now() - start;
    const container = name.replace(/^.*\./, "");
    if (milliseconds <= (worst.get(container)?.milliseconds ?? 0)) continue;
    worst.set(container, { name, number, milliseconds });
  }
  if (count > 1_000) console.table(Object.fromEntries(worst));
});
