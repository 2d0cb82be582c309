/**
 * What pages of other origins can play and read, and under which names clients are counted. Only a
 * browser decides that.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { definePolicy, type LifecycleOptions, withLifecycle } from "../../lib/lifecycle/mod.ts";
import { publishFile } from "../../lib/publishing/publish.ts";
import { publishUrl } from "../../lib/publishing/publish_url.ts";
import { newToken } from "../../lib/storage/token.ts";
import { BROWSER, launchBrowser, type Page, testInBrowser } from "../support/browser.ts";
import { Cdn } from "../support/cdn.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { sideBySide } from "../support/side_by_side.ts";

const browser = shared(BROWSER, launchBrowser);

/** Dates that make every field of a retirement appear. */
const POLICY = { DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2999-01-01" };

/** After the removal every valid token counts as a call, though nothing is published. */
const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };

/** A removal that redirects. */
const REDIRECTING = { ...REMOVED, AFTER_SUNSET: "redirect" };

/** The servers, and what they serve: files, and links to another server, which is open or not. */
async function startPlace() {
  await using started = new AsyncDisposableStack();
  const [mp3, mp4] = [await Deno.readFile(SAMPLE_MP3), await Deno.readFile(SAMPLE_MP4)];
  const wav = silentWav(1200); // browsers load the samples whole
  const cdn = started.use(await Cdn.start({ "a.mp3": mp3, "b.mp4": mp4, "long.wav": wav }));
  const { storage, folder } = started.use(await openLocal());
  await Deno.writeFile(`${folder}/long.wav`, wav);
  const link = (path: string) => publishUrl(storage, cdn.url(path));
  const items = {
    mp3: await publishFile(storage, SAMPLE_MP3),
    mp4: await publishFile(storage, SAMPLE_MP4),
    wav: await publishFile(storage, `${folder}/long.wav`),
    openMp3: await link("/open/a.mp3"),
    openMp4: await link("/open/b.mp4"),
    closedMp3: await link("/a.mp3"),
    closedWav: await link("/long.wav"),
  };
  const start = async (settings: Record<string, string>) =>
    started.use(await ServerProcess.start(settings, folder));
  const server = await start({ ...POLICY, CLIENT_FIELD: "X-Consumer" });
  const brownout = { BROWNOUTS: "2020-01-02/2998-01-01", BROWNOUT_STATUS: "503" };
  const dark = await start({ ...POLICY, ...brownout });
  const removed = await start(REDIRECTING);
  const all = started.move();
  return {
    ...{ cdn, items, server, dark, removed, length: String(mp3.length) },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

type Place = Awaited<ReturnType<typeof startPlace>>;

needing(...BROWSER, program("nginx"))(
  "pages of other origins play and read all that the servers allow them",
  async () => {
    await using place = await startPlace();
    await playAndSeekAll(place);
    await readPublicUrls(place);
    await readAllFields(place);
    await sendAnyField(place);
    await playIsolated(place);
  },
);

/** A page of another origin plays media and seeks in it: with redirects to parts of it, as players do. */
async function playAndSeekAll({ items, server }: Place): Promise<void> {
  const rows = [
    ['video crossorigin="anonymous"', `/media/${items.mp4.token}`, 2],
    ['video crossorigin="anonymous"', `/media/${items.openMp4.token}`, 2],
    ["video", `/video/${items.openMp4.token}`, 2],
    ["audio", `/media/${items.wav.token}`, 1100],
    ["audio", `/media/${items.closedWav.token}`, 1100],
  ] as const;
  await using site = serveSite();
  await sideBySide(rows, async ([element, path, target]) => {
    await using page = await browser().newPage();
    const ranges: string[] = [];
    page.on("response", (response) => {
      ranges.push(response.headers()["content-range"] ?? "");
    });
    await page.goto(pageOf(site, `<${element} autoplay src="${server.origin}${path}">`));
    await playAndSeek(page, target);
    if (element === "audio") { // too long to be loaded up to the position sought
      assertMatch(ranges.join("\n"), /^bytes 17\d{6}-19200043\/19200044$/m);
    } else {
      const seen = await page.locator("video").evaluate((video: Media) => ({
        size: [video.videoWidth, video.videoHeight],
        pictures: video.getVideoPlaybackQuality().totalVideoFrames,
      }));
      assertEquals(seen.size, [320, 180]);
      assert(seen.pictures > 0, "no picture was decoded");
    }
  });
}

/** A page of another origin reads content at a public URL that allows it, after a redirect. */
async function readPublicUrls(
  { cdn, items: { openMp3, closedMp3 }, server, length }: Place,
): Promise<void> {
  await using site = serveSite();
  await using page = await browser().newPage();
  await page.goto(pageOf(site, ""));
  const etag = openMp3.validator ?? "";
  const rows: [
    method: string,
    send: Record<string, string>,
    status: number,
    fields: Record<string, string>,
  ][] = [
    ["HEAD", {}, 200, { "content-type": "audio/mpeg", "content-length": length, etag }],
    ["GET", { Range: "bytes=-10", "If-Range": etag }, 206, { "content-length": "10" }],
    ["GET", { "If-Match": '"other"' }, 412, {}],
  ];
  for (const [method, headers, status, fields] of rows) {
    for (const path of [`/media/${openMp3.token}`, `/audio/${openMp3.token}`]) {
      const seen = await fetchFrom(page, method, server.origin + path, headers);
      assertEquals([seen.url, seen.status], [openMp3.location, status]);
      assertEquals({ ...seen.fields, ...fields }, seen.fields);
    }
    const hidden = `${server.origin}/media/${closedMp3.token}`;
    const blocked = await fetchFrom(page, method, hidden, headers);
    assertEquals(blocked.status, "TypeError: Failed to fetch");
  }
  // After a redirect between origins, a page's origin is opaque (Fetch standard, §4.4).
  const origins = (await cdn.requests()).filter((line) => line.includes(" /open/a.mp3 "))
    .map((line) => line.split("origin=")[1]);
  assertEquals(new Set(origins), new Set(["-", "null"])); // the first is the publisher's
}

/** A page of another origin reads all fields, and sets conditions, by a preflight. */
async function readAllFields(
  { items: { mp3: { token, digest } }, server, dark }: Place,
): Promise<void> {
  const url = `${server.origin}/audio/${token}`;
  const rows: [method: string, url: string, send: Record<string, string>, status: number][] = [
    // First, since a browser that has the whole sends no request for a range.
    ["GET", url, { Range: "bytes=26186-" }, 416],
    ["GET", url, { Range: "bytes=0-9", "If-None-Match": '"other"' }, 206],
    ["POST", url, {}, 405],
    ["HEAD", url, {}, 200],
    ["HEAD", url, { "If-None-Match": `"${digest}"` }, 304],
    ["GET", `${dark.origin}/audio/${token}`, { "If-Match": "*" }, 503],
    ["GET", `${server.origin}/deprecation`, {}, 200],
  ];
  await using site = serveSite();
  await using page = await browser().newPage();
  await page.goto(pageOf(site, ""));
  for (const [method, url, send, status] of rows) {
    const seen = await fetchFrom(page, method, url, send);
    assertEquals([method, url, seen.status], [method, url, status]);
    const { port, pathname } = new URL(url);
    const { fields: sent } = await requestRaw(Number(port), method, pathname, send);
    const names = sent.map(([name]) => name).filter((name) => name !== "connection");
    assertEquals(names.filter((name) => seen.fields[name] === undefined), []);
  }
}

/** What pages send besides what they need: tracing, players' reports, and a gateway's field. */
const UNASKED: Record<string, string> = {
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  "sentry-trace": "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
  baggage: "sentry-environment=production",
  "CMCD-Request": 'bl=21300,cid="a"',
  "X-Requested-With": "XMLHttpRequest",
  "Cache-Control": "no-cache",
  "X-Consumer": "team 7",
};

/** A page of another origin sends any field, with and without a redirect. */
async function sendAnyField({ items: { mp3, openMp3 }, server, removed }: Place): Promise<void> {
  await using site = serveSite();
  await using page = await browser().newPage();
  await page.goto(pageOf(site, ""));
  const rows: [url: string, status: number][] = [
    [`${server.origin}/media/${mp3.token}`, 200],
    [`${server.origin}/audio/${mp3.token}`, 200],
    [`${server.origin}/audio/${openMp3.token}`, 200], // 307
    [`${removed.origin}/audio/${mp3.token}`, 200], // 308
    [`${removed.origin}/audio/x`, 410],
    [`${server.origin}/audio/${newToken()}`, 404],
    [`${server.origin}/nowhere`, 404],
    [`${server.origin}/deprecation`, 200],
  ];
  // The other server does not allow Authorization.
  const withKey = { ...UNASKED, Authorization: "Bearer a" };
  const each = Object.entries(UNASKED).map((field) => Object.fromEntries([field]));
  for (const [url, status] of rows) {
    const sent = [...each, url.endsWith(openMp3.token) ? UNASKED : withKey];
    for (const method of ["HEAD", "GET"]) {
      for (const fields of sent) {
        const seen = await fetchFrom(page, method, url, fields);
        assertEquals([seen.status, url, method, fields], [status, url, method, fields]);
      }
    }
  }
}

/** An isolated page of another site plays media, with and without a redirect. */
async function playIsolated({ items, server, removed }: Place): Promise<void> {
  await using site = serveSite({
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
  });
  const rows: [element: "audio" | "video", url: string, plays?: false][] = [
    ["audio", `${server.origin}/media/${items.mp3.token}`],
    ["audio", `${server.origin}/audio/${items.mp3.token}`],
    ["video", `${server.origin}/video/${items.mp4.token}`],
    ["audio", `${server.origin}/audio/${items.openMp3.token}`], // 307
    ["video", `${server.origin}/media/${items.openMp4.token}`],
    ["audio", `${removed.origin}/audio/${items.mp3.token}`], // 308
    ["video", `${removed.origin}/video/${items.openMp4.token}`], // 308, then 307
    // The other server allows nothing.
    ["audio", `${server.origin}/media/${items.closedMp3.token}`, false],
  ];
  await sideBySide(rows, async ([element, url, plays = true]) => {
    await using page = await browser().newPage();
    const html = pageOf(site, `<${element} autoplay src="${url}">`);
    await page.goto(html.replace("127.0.0.1", "localhost"));
    assert(await page.evaluate("crossOriginIsolated"), "the page is not isolated");
    if (plays) return await playsPast(page, 0);
    await assertRejects(() => playsPast(page, 0), Error, "Media error 4");
  });
}

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

/** What a page's script can read of a response. */
interface Read {
  readonly url: string;
  /** An error as text, if it may not read it. */
  readonly status: number | string;
  readonly fields: Record<string, string>;
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
      await response.bytes();
      const fields = Object.fromEntries(response.headers);
      return { url: response.url, status: response.status, fields };
    } catch (error) {
      return { url, status: String(error), fields: {} };
    }
  }, { method, url, send });
}

/** A site whose pages are given in their URLs, and have these fields. */
function serveSite(fields: Record<string, string> = {}): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const html = decodeURIComponent(new URL(url).search.slice(1));
    const headers = { "Content-Type": "text/html; charset=utf-8", ...fields };
    return new Response(html, { headers });
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

type Handler = (request: Request) => Response | Promise<Response>;

/** Adds a field that lets any page read a response, as a middleware does. */
function open(handler: Handler, add: "set" | "append" = "set"): Handler {
  return async (request) => {
    const response = await handler(request);
    response.headers[add]("Access-Control-Allow-Origin", "*");
    return response;
  };
}

testInBrowser("a page of another origin reads the announcement and the refusal", async () => {
  const policy = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-03-01T09:00Z/PT1H"],
    brownoutStatus: 503,
  });
  let now = 0;
  const plain = () => new Response("old");
  const retired = (handler: Handler, options: LifecycleOptions = {}) =>
    withLifecycle(handler, policy, { ...options, clock: () => now, successor: () => "/v2" });
  const allow = "https://a.example";
  const setUps: Record<string, Handler> = {
    "CORS inside": retired(open(plain)),
    "CORS outside": open(retired(plain)),
    "CORS appended outside": open(retired(plain, { refusalFields: () => [] }), "append"),
    "CORS for one origin": retired(open(plain), {
      refusalFields: () => [["Access-Control-Allow-Origin", allow]],
    }),
  };
  await using site = new Origin(() => new Response("a page"));
  await using page = await browser().newPage();
  await page.goto(site.url("/"));
  for (const [name, handler] of Object.entries(setUps)) {
    await using origin = new Origin(handler);
    const read = async (instant: string) => {
      now = Date.parse(instant);
      return await page.evaluate(async (url: string) => {
        const { status, headers } = await fetch(url, { cache: "no-store" });
        const names = ["deprecation", "sunset", "link", "retry-after"];
        return [status, ...names.map((name) => headers.get(name))];
      }, origin.url("/v1")).catch(() => "hidden");
    };
    const said = [
      "@1798761600",
      "Wed, 30 Jun 2027 00:00:00 GMT",
      '</v2>; rel="successor-version"',
    ];
    assertEquals(await read("2027-02-01"), [200, ...said, null]);
    const isHidden = name === "CORS for one origin";
    const until = "Mon, 01 Mar 2027 10:00:00 GMT";
    const refused = isHidden ? "hidden" : [503, ...said, until];
    assertEquals(await read("2027-03-01T09:30:00Z"), refused);
    assertEquals(await read("2027-07-01"), isHidden ? "hidden" : [410, ...said, null]);
  }
});

needing(...BROWSER, program("curl"))(
  "a browser is counted under the site that it is on, and a program under its own name",
  async () => {
    await using subject = await openLocal();
    const server = await ServerProcess.start(REMOVED, subject.folder);
    const source = `${server.origin}/audio/${newToken()}`;
    await using site = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () =>
        new Response(`<!DOCTYPE html><audio preload="auto" src="${source}"></audio>`, {
          headers: { "Content-Type": "text/html" },
        }),
    );
    await using page = await browser().newPage();
    await page.goto(`http://localhost:${site.addr.port}/private/page?user=jane`);
    await page.evaluate(`new Promise((resolve) => {
      const audio = document.querySelector("audio");
      if (audio.error !== null) resolve();
      else audio.addEventListener("error", resolve); // 410
    })`);
    await new Deno.Command("curl", { args: ["-sI", source] }).output();
    await server.stop();
    await using opened = await openLedgerIn(subject.folder);
    const rows = await Array.fromAsync(opened.ledger.usage(""));
    assertEquals(rows.map(({ client }) => client).sort(), ["app curl", "site localhost"]);
  },
);

needing("processes")("CLIENT_FIELD names the clients that send it", async () => {
  await using subject = await openLocal();
  const settings = { ...REMOVED, CLIENT_FIELD: "X-Consumer" };
  const server = await ServerProcess.start(settings, subject.folder);
  const consumers = ["team 7", newToken(), "x".repeat(65), "\u00fc", "", undefined];
  for (const consumer of consumers) {
    const fields = consumer === undefined ? {} : { "X-Consumer": consumer };
    const agent = { "User-Agent": "okhttp/4" };
    await requestRaw(server.port, "HEAD", `/audio/${newToken()}`, { ...fields, ...agent });
  }
  await server.stop();
  await using opened = await openLedgerIn(subject.folder);
  const rows = await Array.fromAsync(opened.ledger.usage(""));
  const counts = rows.map(({ client, calls }) => `${client}: ${calls}`);
  assertEquals(counts, ["(other): 3", "app okhttp: 1", `id ${consumers[1]}: 1`, "id team 7: 1"]);
});
