import { assert, assertEquals, assertMatch } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { BROWSER, launchBrowser, type Page, testInBrowser } from "../support/browser.ts";
import { Cdn } from "../support/cdn.ts";
import { openLocal } from "../support/local_storage.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { publishFile } from "../../lib/publishing/publish.ts";
import { publishUrl } from "../../lib/publishing/publish_url.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

/** Dates that make every field of a retirement appear, and these fields. */
const POLICY = { DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2999-01-01" };
const DATES = { deprecation: "@1577836800", sunset: "Tue, 01 Jan 2999 00:00:00 GMT" };
const NOTICE_LINKS = '</deprecation>; rel="deprecation", </deprecation>; rel="sunset"';

// Only a browser requests media as players do.
testInBrowser("a page of another origin plays media and seeks in it", async (t) => {
  await using subject = await openLocal();
  const longWav = `${subject.folder}/long.wav`;
  await Deno.writeFile(longWav, silentWav(1200)); // browsers load the samples whole
  const mp3 = await publishFile(subject.storage, SAMPLE_MP3);
  const mp4 = await publishFile(subject.storage, SAMPLE_MP4);
  const wav = await publishFile(subject.storage, longWav);
  await using server = await ServerProcess.start({}, subject.folder);
  await using site = serveSite();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  const plays = async (element: string, { token }: { token: string }, target: number) => {
    const src = `${server.origin}/media/${token}`;
    await page.goto(pageOf(site, `<${element} autoplay src="${src}">`));
    await playAndSeek(page, target);
  };
  await t.step("the spoken sample", () => plays("audio", mp3, 4));
  await t.step("the sample with pictures, fetched with CORS", async () => {
    await plays('video crossorigin="anonymous"', mp4, 2);
    const seen = await page.locator("video").evaluate((video: Media) => ({
      size: [video.videoWidth, video.videoHeight],
      pictures: video.getVideoPlaybackQuality().totalVideoFrames,
    }));
    assertEquals(seen.size, [320, 180]);
    assert(seen.pictures > 0, "no picture was decoded");
  });

  await t.step("audio too long to be loaded up to the position sought", async () => {
    const ranges: string[] = [];
    page.on("response", (response) => {
      const range = response.headers()["content-range"];
      if (range !== undefined) ranges.push(range);
    });
    await plays("audio", wav, 1100);
    assertMatch(ranges.join("\n"), /^bytes 17\d{6}-19200043\/19200044$/m);
  });
});

const testWithCdn = needing(...BROWSER, program("nginx"));

// Only a browser follows redirects as players do, for parts of the content.
testWithCdn("a page of another origin plays media at a public URL and seeks in it", async (t) => {
  await using cdn = await Cdn.start({
    "a.mp3": await Deno.readFile(SAMPLE_MP3),
    "b.mp4": await Deno.readFile(SAMPLE_MP4),
    "long.wav": silentWav(1200),
  });
  await using subject = await openLocal();
  const publish = async (path: string) => (await publishUrl(subject.storage, cdn.url(path))).token;
  const [mp3, mp4] = [await publish("/a.mp3"), await publish("/open/b.mp4")];
  const wav = await publish("/long.wav");
  const asked = (await cdn.requests()).length;
  await using server = await ServerProcess.start(POLICY, subject.folder);
  await using site = serveSite();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  const redirects: (string | undefined)[] = [];
  page.on("response", (response) => {
    const { location } = response.headers();
    if (response.url().startsWith(server.origin)) redirects.push(location);
  });
  const plays = async (element: string, path: string, target: number) => {
    await page.goto(pageOf(site, `<${element} autoplay src="${server.origin}${path}">`));
    await playAndSeek(page, target);
  };
  await t.step("audio", () => plays("audio", `/media/${mp3}`, 4));
  await t.step("audio at the deprecated path", () => plays("audio", `/audio/${mp3}`, 4));
  await t.step("video", () => plays("video", `/video/${mp4}`, 2));
  await t.step("video, fetched with CORS", async () => {
    await plays('video crossorigin="anonymous"', `/media/${mp4}`, 2);
  });
  await t.step("audio too long to be loaded up to the position sought", async () => {
    await plays("audio", `/media/${wav}`, 1100);
    const parts = (await cdn.requests()).slice(asked).join("\n");
    assertMatch(parts, /^GET \/long\.wav 206 range=bytes=17\d{6}-/m);
  });
  const locations = ["/a.mp3", "/open/b.mp4", "/long.wav"].map((path) => cdn.url(path));
  assertEquals([...new Set(redirects)], locations);
});

// Only a browser decides what a page may read after a redirect.
testWithCdn("a page of another origin reads content at a public URL that allows it", async (t) => {
  const mp3 = await Deno.readFile(SAMPLE_MP3);
  await using cdn = await Cdn.start({ "a.mp3": mp3 });
  await using subject = await openLocal();
  const open = await publishUrl(subject.storage, cdn.url("/open/a.mp3"));
  const closed = await publishUrl(subject.storage, cdn.url("/a.mp3"));
  await using server = await ServerProcess.start(POLICY, subject.folder);
  await using site = serveSite();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(pageOf(site, ""));
  const hidden = `${server.origin}/media/${closed.token}`;
  const etag = open.validator ?? "";
  const length = String(mp3.length);
  const rows: [
    method: string,
    send: Record<string, string>,
    status: number,
    fields: Record<string, string>,
  ][] = [
    ["HEAD", {}, 200, { "content-type": "audio/mpeg", "content-length": length, etag }],
    ["GET", {}, 200, { "content-type": "audio/mpeg", "content-length": length, etag }],
    ["GET", { Range: "bytes=0-9" }, 206, { "content-range": `bytes 0-9/${length}` }],
    ["GET", { Range: "bytes=-10", "If-Range": etag }, 206, { "content-length": "10" }],
    ["HEAD", { "If-None-Match": etag }, 304, { etag }],
    ["GET", { "If-Match": '"other"' }, 412, {}],
  ];
  for (const [method, headers, status, fields] of rows) {
    await t.step([status, method, ...Object.keys(headers)].join(" "), async () => {
      for (const path of [`/media/${open.token}`, `/audio/${open.token}`]) {
        const seen = await fetchFrom(page, method, server.origin + path, headers);
        assertEquals([seen.url, seen.status], [open.location, status]);
        assertEquals({ ...seen.fields, ...fields }, seen.fields);
      }
      const blocked = await fetchFrom(page, method, hidden, headers);
      assertEquals(blocked.status, "TypeError: Failed to fetch");
    });
  }
  // After a redirect between origins, a page's origin is opaque (Fetch standard, §4.4).
  const origins = (await cdn.requests()).filter((line) => line.includes(" /open/"))
    .slice(1).map((line) => line.split("origin=")[1]); // the first is the publisher's
  assertEquals([...new Set(origins)], ["null"]);
});

// Only a browser hides fields from a page, or sends a preflight before it sets them.
testInBrowser("a page of another origin reads all fields, and sets conditions", async (t) => {
  await using subject = await openLocal();
  const { token, digest } = await publishFile(subject.storage, SAMPLE_MP3);
  await using server = await ServerProcess.start(POLICY, subject.folder);
  const inBrownout = { ...POLICY, BROWNOUTS: "2020-01-02/2998-01-01" };
  await using dark = await ServerProcess.start(inBrownout, subject.folder);
  const etagOf = async (path: string) =>
    field(await requestRaw(server.port, "HEAD", path), "etag") ?? "";
  const [notice, description] = [await etagOf("/deprecation"), await etagOf("/openapi.json")];

  const { origin } = server;
  const url = `${origin}/audio/${token}`;
  const etag = `"${digest}"`;
  const known = announced(token);
  const validators = { ...known, etag };
  const reprDigest = `sha-256=:${Uint8Array.fromHex(digest).toBase64()}:`;
  const whole = { ...validators, "accept-ranges": "bytes", "repr-digest": reprDigest };
  const first = { ...whole, "content-range": "bytes 0-9/26186", "content-length": "10" };
  const last = { ...whole, "content-range": "bytes 26176-26185/26186", "content-length": "10" };
  const unknown = newToken();
  const off = { ...known, "retry-after": "Mon, 01 Jan 2998 00:00:00 GMT" };
  const rows: Row[] = [
    // First, since a browser that has the whole sends no request for a range.
    ["GET", url, { Range: "bytes=26186-" }, 416, { ...known, "content-range": "bytes */26186" }],
    ["GET", url, { Range: "bytes=0-9", "If-None-Match": '"other"' }, 206, first],
    ["GET", url, { Range: "bytes=-10", "If-Range": etag }, 206, last],
    ["POST", url, {}, 405, { ...known, allow: "GET, HEAD, OPTIONS" }],
    ...["HEAD", "GET"].flatMap((method): Row[] => [
      [method, url, {}, 200, whole],
      [method, url, { "If-None-Match": etag }, 304, validators],
      [method, `${origin}/audio/x`, {}, 400, announced()],
      [method, `${origin}/audio/${unknown}`, {}, 404, announced(unknown)],
      [method, url, { "If-Match": '"other"' }, 412, known],
      [method, `${dark.origin}/audio/${token}`, { "If-Match": "*" }, 503, off],
      [method, `${origin}/deprecation`, {}, 200, { etag: notice, vary: "Accept" }],
      [method, `${origin}/deprecation`, { "If-None-Match": notice }, 304, { vary: "Accept" }],
      [method, `${origin}/openapi.json`, { "If-None-Match": description }, 304, {}],
      [method, `${origin}/healthz`, { "If-None-Match": "*" }, 200, {}],
      [method, `${origin}/nowhere`, {}, 404, {}],
    ]),
  ];
  await using site = serveSite();
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(pageOf(site, ""));
  for (const [method, url, send, status, fields] of rows) {
    await t.step([status, method, ...Object.keys(send)].join(" "), async () => {
      const seen = await fetchFrom(page, method, url, send);
      const compared = Object.keys(fields).map((name) => [name, seen.fields[name]]);
      assertEquals([seen.status, Object.fromEntries(compared)], [status, fields]);
      const { port, pathname } = new URL(url);
      const { fields: sent } = await requestRaw(Number(port), method, pathname, send);
      const names = sent.map(([name]) => name).filter((name) => name !== "connection");
      assertEquals(names.filter((name) => seen.fields[name] === undefined), []);
      if (method === "GET" && status >= 400) assertEquals(JSON.parse(seen.text).status, status);
    });
  }
});

/** The part of media elements used here; Deno's types have no DOM. */
interface Media {
  currentTime: number;
  onseeked: () => void;
  readonly dataset: { soughtTo?: string };
  readonly error: { readonly code: number; readonly message: string } | null;
  readonly videoWidth: number;
  readonly videoHeight: number;
  getVideoPlaybackQuality(): { readonly totalVideoFrames: number };
}

/** Waits until a page plays its media, seeks, and waits until it continues from there. */
async function playAndSeek(page: Page, target: number): Promise<void> {
  const media = page.locator("audio, video");
  await playsPast(page, 0);
  await media.evaluate((media: Media, target) => {
    media.onseeked = () => media.dataset.soughtTo = String(media.currentTime);
    media.currentTime = target;
  }, target);
  await page.locator("[data-sought-to]").waitFor({ state: "attached" });
  const time = Number(await media.getAttribute("data-sought-to"));
  assert(time >= target, `sought ${target} s, got to ${time} s`);
  await playsPast(page, time);
}

/** Waits until the media of a page plays past a time in seconds. */
async function playsPast(page: Page, time: number): Promise<void> {
  const media = await page.locator("audio, video").elementHandle();
  await page.waitForFunction(({ media, time }: { media: Media; time: number }) => {
    const { error } = media;
    if (error !== null) throw new Error(`Media error ${error.code}: ${error.message}`);
    return media.currentTime > time;
  }, { media, time });
}

/** A request, its status, and fields that a script can read, by name in lower case. */
type Row = [
  method: string,
  url: string,
  send: Record<string, string>,
  status: number,
  fields: Record<string, string>,
];

/** What a page's script can read of a response. */
interface Read {
  readonly url: string;
  /** An error as text, if it may not read it. */
  readonly status: number | string;
  readonly fields: Record<string, string>;
  readonly text: string;
}

/** Sends a request from a page. */
async function fetchFrom(
  page: Page,
  method: string,
  url: string,
  send: Record<string, string>,
): Promise<Read> {
  return await page.evaluate(async ({ method, url, send }) => {
    try {
      const signal = AbortSignal.timeout(30_000);
      const response = await fetch(url, { method, headers: send, signal });
      const fields = Object.fromEntries(response.headers);
      const text = await response.text();
      return { url: response.url, status: response.status, fields, text };
    } catch (error) {
      return { url, status: String(error), fields: {}, text: "" };
    }
  }, { method, url, send });
}

/** The fields that announce the retirement of a path, with a valid token or without. */
function announced(token?: string): Record<string, string> {
  const successor = token === undefined ? "" : `</media/${token}>; rel="successor-version", `;
  return { ...DATES, link: successor + NOTICE_LINKS };
}

/** A site whose pages are given in their URLs. */
function serveSite(): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const html = decodeURIComponent(new URL(url).search.slice(1));
    return new Response(html, { headers: { "Content-Type": "text/html; charset=utf-8" } });
  });
}

function pageOf({ addr }: Deno.HttpServer<Deno.NetAddr>, html: string): string {
  return `http://127.0.0.1:${addr.port}/?${encodeURIComponent(html)}`;
}

/** Makes a silent WAV file of 16 kB per second. */
function silentWav(seconds: number): Uint8Array<ArrayBuffer> {
  const length = seconds * 16_000;
  const bytes = new Uint8Array(44 + length);
  bytes.set(new TextEncoder().encode("RIFF    WAVEfmt                     data"));
  const view = new DataView(bytes.buffer);
  view.setUint32(4, 36 + length, true);
  view.setUint32(16, 16, true); // bytes of the format, which follows: PCM, one channel
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, 8_000, true); // samples a second
  view.setUint32(28, 16_000, true); // bytes a second
  view.setUint16(32, 2, true); // bytes a sample
  view.setUint16(34, 16, true); // bits a sample
  view.setUint32(40, length, true);
  return bytes;
}
