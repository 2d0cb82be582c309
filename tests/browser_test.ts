import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { Page } from "playwright-core";
import { publishFile } from "../lib/cli/publish.ts";
import { newToken } from "../lib/http/token.ts";
import { HAS_BROWSER, launchBrowser } from "./support/browser.ts";
import { openLocal } from "./support/local_storage.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "./support/paths.ts";
import { ServerProcess } from "./support/server.ts";

const DEPRECATED_AT = "2020-01-01";
const SUNSET_AT = "2999-01-01";
const DEPRECATION = `@${Date.parse(DEPRECATED_AT) / 1000}`;

/** Skipped where there is no browser to start. */
const ignore = !HAS_BROWSER;

Deno.test({
  name: "a page of another origin plays media, and seeks in it",
  ignore,
  async fn(t) {
    await using subject = await openLocal();
    const wav = `${subject.folder}/long.wav`;
    await Deno.writeFile(wav, silence(1200));
    const publish = async (path: string) =>
      `/media/${(await publishFile(subject.storage, path)).token}`;
    const [mp3, mp4, long] = [await publish(SAMPLE_MP3), await publish(SAMPLE_MP4), await publish(wav)];
    await using server = await ServerProcess.start({}, subject.folder);
    await using browser = await launchBrowser();

    await t.step("the spoken sample", async () => {
      await using site = serveSite(`<audio autoplay src="${server.origin}${mp3}"></audio>`);
      const page = await browser.newPage();
      await page.goto(originOf(site));
      await playAndSeek(page, 4);
    });

    await t.step("the sample with pictures, fetched with CORS", async () => {
      await using site = serveSite(
        `<video autoplay crossorigin="anonymous" src="${server.origin}${mp4}"></video>`,
      );
      const page = await browser.newPage();
      await page.goto(originOf(site));
      const { frames } = await playAndSeek(page, 2.5);
      const media = page.locator("video");
      const [width, height] = await media.evaluate((media: Media) => [
        media.videoWidth,
        media.videoHeight,
      ]);
      assertEquals([width, height], [320, 180]);
      assert(frames > 0, "no picture was shown");
    });

    await t.step("audio too long to be loaded whole before the seek", async () => {
      await using site = serveSite(`<audio autoplay src="${server.origin}${long}"></audio>`);
      const page = await browser.newPage();
      const ranges: string[] = [];
      page.on("response", (response) => {
        const range = response.headers()["content-range"];
        if (range !== undefined) ranges.push(`${response.status()} ${range}`);
      });
      await page.goto(originOf(site));
      await playAndSeek(page, 1100);
      console.log(ranges);
    });
  },
});

/** What is used here of a media element; Deno's types know no documents. */
interface Media {
  currentTime: number;
  readonly error: { readonly message: string } | null;
  readonly videoWidth: number;
  readonly videoHeight: number;
  getVideoPlaybackQuality?(): { readonly totalVideoFrames: number };
}
interface Player extends Media { seekedTo?: number; onseeked: () => void }

async function playAndSeek(page: Page, target: number): Promise<{ frames: number }> {
  const media = await page.locator("audio, video").elementHandle();
  const isPast = (time: number) =>
    page.waitForFunction(([media, time]: [Media, number]) => {
      if (media.error !== null) throw new Error(media.error.message);
      return media.currentTime > time;
    }, [media, time]);
  await isPast(0.2);
  return { frames: 0 };
}

/** Serves one page. */
function serveSite(html: string): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(html, { headers: { "Content-Type": "text/html" } }),
  );
}

function originOf({ addr }: Deno.HttpServer<Deno.NetAddr>): string {
  return `http://127.0.0.1:${addr.port}`;
}

/** A WAV file of silence, 16 kB a second. */
function silence(seconds: number): Uint8Array<ArrayBuffer> {
  const length = seconds * 16_000;
  const bytes = new Uint8Array(44 + length);
  const view = new DataView(bytes.buffer);
  const text = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  text(0, "RIFF");
  view.setUint32(4, 36 + length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, 8_000, true);
  view.setUint32(28, 16_000, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, length, true);
  return bytes;
}
