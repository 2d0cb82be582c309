import { assert, assertEquals, assertInstanceOf, assertMatch, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { memoryBytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType } from "../../lib/publishing/media_type.ts";
import type { Kind } from "../../lib/storage/item.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { FORMATS, makeAll, prepare } from "./formats.ts";
import { HOSTILE } from "./hostile.ts";

const NEEDS = ["processes", program("ffmpeg"), program("espeak-ng")] as const;
const test = needing(...NEEDS);

/** The folder with a file of each format. */
const files = shared(NEEDS, async () => {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  const sources = await Deno.makeTempDir({ prefix: "media-head-" });
  await prepare(sources);
  await makeAll(folder, sources);
  await Deno.remove(sources, { recursive: true });
  return { folder, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
});

/** Sound in containers that have no type for it. */
const SOUND_IN_VIDEO = [
  ...["sound.mov", "pcm.mov", "sound.avi", "sound.flv", "sound.vob", "ac3.vob", "dvd.vob"],
  ...["sound.ts", "speech.ts", "ac3.ts", "dvb.ts", "latm.ts", "opus.ts", "sound.m2ts"],
];

function kindOf(name: string, type: string): Kind {
  return SOUND_IN_VIDEO.includes(name) ? "audio" : type.split("/")[0] as Kind;
}

/**
 * Returns the kind that FFmpeg finds in each file: video if it has pictures other than a cover. One
 * process reads all, because starting it costs more than reading a file.
 */
async function probe(paths: readonly string[]): Promise<Kind[]> {
  const args = ["-nostdin", "-hide_banner", ...paths.flatMap((path) => ["-i", path])];
  const { stderr } = await new Deno.Command("ffmpeg", { args }).output(); // fails without an output
  const lines = new TextDecoder().decode(stderr).split("\n");
  return paths.map((path, index) => {
    const streams = lines.filter((line) => line.trim().startsWith(`Stream #${index}:`));
    assert(streams.length > 0, path);
    const isPicture = (line: string) => / Video: /.test(line) && !/\(attached pic\)/.test(line);
    return streams.some(isPicture) ? "video" : "audio";
  });
}

/** Files about which FFmpeg errs: it does not know CELT, and takes the pictures of chapters. */
const BEYOND_FFMPEG = ["celt.ogg", "pictures.m4b"];

test(`${FORMATS.length} formats have the type that FFmpeg finds`, async () => {
  for (const [name, , type] of FORMATS) {
    const content = memoryBytes(await Deno.readFile(`${files().folder}/${name}`));
    const detected = await detectMediaType(name, content, {});
    assertEquals(detected, { kind: kindOf(name, type), type }, name);
  }
  const known = FORMATS.filter(([name]) => !BEYOND_FFMPEG.includes(name));
  const found = await probe(known.map(([name]) => `${files().folder}/${name}`));
  assertEquals(
    known.map(([name], index) => [name, found[index]]),
    known.map(([name, , type]) => [name, kindOf(name, type)]),
  );
});

/** Their tracks are described after the first 64 kB. */
const OUT_OF_REACH = ["end.m4a", "prores.mov", "thirty-hours.m4a"];

test("the beginning of a file shows its kind, unless its tracks come later", async () => {
  for (const [name, , type] of FORMATS) {
    const content = (await Deno.readFile(`${files().folder}/${name}`)).subarray(0, 65_536);
    const detecting = detectMediaType(name, memoryBytes(content, false), {});
    if (OUT_OF_REACH.includes(name)) {
      const { message } = await assertRejects(() => detecting, RefusedError);
      assertMatch(message, / --kind$/);
    } else assertEquals((await detecting).kind, kindOf(name, type), name);
  }
});

test("a film that lacks its first ten bytes never becomes sound", async () => {
  for (const [name, , type] of FORMATS) {
    if (kindOf(name, type) !== "video") continue;
    const content = (await Deno.readFile(`${files().folder}/${name}`)).subarray(10);
    try {
      assertEquals((await detectMediaType(name, memoryBytes(content), {})).kind, "video", name);
    } catch (error) {
      assertInstanceOf(error, RefusedError, name);
    }
  }
});

/** FILES=20000 makes it a long run, which prints the file of each format that took longest. */
test("damaged files are detected or refused", async () => {
  const count = Number(Deno.env.get("FILES") ?? 500);
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
  if (count > 500) console.table(Object.fromEntries(worst));
});
