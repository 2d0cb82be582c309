/**
 * A table of requests for every outcome, run against the handler and on the wire. Each row is sent
 * as GET and as HEAD, which must agree.
 */

import { assert, assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { PROBLEM_TYPES, type ProblemName } from "../../lib/server/problems.ts";
import type { LinkedItem, PublishedItem } from "../../lib/storage/item.ts";
import { newToken, type Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import type { MediaSubject } from "../support/media_subject.ts";
import { underPolicy } from "../support/routes.ts";

/** The expected values of fields, by lower-case name; `null` for absence. */
type Expectation = Readonly<Record<string, string | null>>;

/** What a GET gets. */
interface Outcome {
  readonly status: number;
  readonly expect: Expectation;
  /** The problem type, required for every error. */
  readonly problem?: ProblemName;
  /** The content, unless it is a problem. */
  readonly content?: Uint8Array;
}

/** A request, and the expected response. */
interface Row extends Outcome {
  readonly what: string;
  readonly target: string;
  readonly fields: Readonly<Record<string, string>> | undefined;
}

/** The items that the table requests. */
interface TableItems {
  readonly audio: PublishedItem;
  readonly video: PublishedItem;
  /** At public URLs where nothing listens. */
  readonly linkedAudio: LinkedItem;
  readonly linkedVideo: LinkedItem;
  readonly unpublished: Token;
  /** Published, but the content file is gone. */
  readonly missing: Token;
  /** Published, but the content is truncated. */
  readonly cut: Token;
  /** The status that it answers. */
  readonly replaced: 502 | 503;
}

/** The content of the table's audio item. */
const AUDIO = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);
const VIDEO = Uint8Array.from({ length: 300 }, (_, index) => index % 17);

/** 2001-09-09T01:46:40Z, a Sunday. */
const PUBLISHED_AT = 1_000_000_000_000;
const LAST_MODIFIED = "Sun, 09 Sep 2001 01:46:40 GMT";
const LATER = "Sun, 09 Sep 2001 01:46:41 GMT";
const EARLIER = "Sun, 09 Sep 2001 01:46:39 GMT";

/** The announcement that the table expects, for `DEPRECATED_AT` alone. */
export const DEPRECATED_AT = "2026-03-04T05:06:07Z";
const DEPRECATION = "@1772600767";
const FOUNDATION = '</deprecation>; rel="deprecation"';

/** The handler's configuration that the table expects. */
export const CONFIG = {
  cacheMaxAge: 300,
  ...underPolicy(definePolicy({ deprecatedAt: DEPRECATED_AT, documentation: "/deprecation" })),
};

/** Publishes an item at a URL where nothing listens, with a validator that clients may learn. */
async function publishLink(
  { storage }: MediaSubject,
  kind: "audio" | "video",
  name: string,
): Promise<LinkedItem> {
  const stated = { type: `${kind}/mp4`, length: 1000, validator: '"there"' };
  const location = `http://127.0.0.1:9/${name}`;
  const item = { token: newToken(), kind, location, publishedAt: PUBLISHED_AT, ...stated };
  await storage.catalogue.add(item);
  return item;
}

/** Publishes the items that the table requests. */
export async function publishTableItems(subject: MediaSubject): Promise<TableItems> {
  const audio = await subject.publish({
    ...newMetadata("audio"),
    type: "audio/mpeg",
    name: "a, b.mp3",
    language: "en",
    publishedAt: PUBLISHED_AT + 999,
  }, AUDIO);
  const video = await subject.publish(
    { ...newMetadata("video"), publishedAt: PUBLISHED_AT },
    VIDEO,
  );
  const linkedAudio = await publishLink(subject, "audio", "a.m4a");
  const linkedVideo = await publishLink(subject, "video", "%C3%A4%20b.mp4?c=d&e");
  const unpublished = await subject.publish(newMetadata("audio"), AUDIO.slice(1));
  await subject.unpublish(unpublished.token, PUBLISHED_AT);
  const missing = await subject.publish(newMetadata("audio"), AUDIO.slice(2));
  await subject.damage(missing, undefined);
  const cut = await subject.publish(newMetadata("video"), AUDIO.slice(3));
  await subject.damage(cut, AUDIO.slice(4));
  return {
    audio,
    video,
    linkedAudio,
    linkedVideo,
    unpublished: unpublished.token,
    missing: missing.token,
    cut: cut.token,
    replaced: subject.replaced ?? 503,
  };
}

/** The fields of every response, by which pages of any origin may read it, and embed media. */
const PAGES: Expectation = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
  "cross-origin-resource-policy": "cross-origin",
};

/** Cache-Control of documents, which a compression on the way would change. */
const FOUND = "max-age=300, no-transform";

/** The response to a request for a text. */
function text(type: string, cacheControl: string): Outcome {
  const expect = { "content-type": type, "cache-control": cacheControl, ...PAGES };
  return { status: 200, expect };
}

/** Fields that describe content, or a range of it. */
const DESCRIBING = [
  ...["content-type", "content-range", "content-language", "content-disposition"],
  ...["accept-ranges", "etag", "last-modified", "repr-digest", "x-content-type-options"],
];

/** Returns the rows for some items. */
export function requestTable(items: TableItems): Row[] {
  const { audio, video, linkedAudio, linkedVideo, unpublished, missing, cut, replaced } = items;
  const unknown = newToken();
  const media = `/media/${audio.token}`;
  const deprecated = `/audio/${audio.token}`;
  const etag = `"${audio.digest}"`;
  const other = `"${video.digest}"`;

  const whole: Expectation = {
    "content-type": "audio/mpeg",
    "content-length": "1000",
    "content-range": null,
    "content-language": "en",
    "content-disposition": 'inline; filename="a, b.mp3"',
    "accept-ranges": "bytes",
    etag,
    "last-modified": LAST_MODIFIED,
    "cache-control": FOUND,
    "repr-digest": `sha-256=:${Uint8Array.fromHex(audio.digest).toBase64()}:`,
    "x-content-type-options": "nosniff",
    ...PAGES,
    deprecation: null,
    link: null,
    "transfer-encoding": null,
  };
  const none = Object.fromEntries(DESCRIBING.map((name) => [name, null]));
  const notModified: Expectation = {
    ...none,
    "content-length": null,
    etag,
    "last-modified": LAST_MODIFIED,
    "cache-control": FOUND,
    ...PAGES,
  };
  const error: Expectation = {
    "content-type": "application/problem+json",
    "cache-control": "no-store, no-transform",
    ...PAGES,
    etag: null,
    "last-modified": null,
    location: null,
    "repr-digest": null,
    "retry-after": null,
    deprecation: null,
    link: null,
  };

  const all: Outcome = { status: 200, expect: whole, content: AUDIO };
  const pictures: Outcome = {
    status: 200,
    expect: {
      "content-type": "video/mp4",
      "content-length": "300",
      "content-disposition": null,
      "content-language": null,
    },
    content: VIDEO,
  };
  const part = (first: number, last: number): Outcome => {
    const range = `bytes ${first}-${last}/1000`;
    const lengths = { "content-length": String(last - first + 1), "content-range": range };
    const content = AUDIO.slice(first, last + 1);
    return { status: 206, expect: { ...whole, ...lengths }, content };
  };
  const fresh: Outcome = { status: 304, expect: notModified, content: new Uint8Array() };
  const redirected = ({ location }: LinkedItem): Outcome => ({
    status: 307,
    expect: {
      location,
      "cache-control": FOUND,
      "content-length": "0",
      ...PAGES,
      ...none,
      deprecation: null,
      link: null,
    },
    content: new Uint8Array(),
  });
  const fails = (status: number, problem: ProblemName, expect: Expectation = {}): Outcome => ({
    status,
    problem,
    expect: { ...error, ...expect },
  });
  const nowhere = fails(404, "no-such-route");
  const malformed = fails(400, "malformed-token");
  const never = fails(404, "never-published");
  const gone = fails(410, "unpublished");
  const failed = fails(412, "precondition-failed");
  const unsatisfiable = fails(416, "range-not-satisfiable", { "content-range": "bytes */1000" });
  const unavailable = fails(503, "storage-unavailable", { "retry-after": "5" });
  const changed = replaced === 503 ? unavailable : fails(502, "content-replaced");
  /** The same outcome on a deprecated path, which announces the successor of a token. */
  const announced = (outcome: Outcome, token?: string): Outcome => {
    const successor = token === undefined ? "" : `</media/${token}>; rel="successor-version", `;
    const announcement = { deprecation: DEPRECATION, link: successor + FOUNDATION };
    return { ...outcome, expect: { ...outcome.expect, ...announcement } };
  };

  const same = { "If-None-Match": etag };
  const [some, beyond] = [{ Range: "bytes=1-2" }, { Range: "bytes=1000-" }];
  const rows: [
    what: string,
    target: string,
    outcome: Outcome,
    fields?: Readonly<Record<string, string>>,
  ][] = [
    ["audio", media, all],
    ["audio, deprecated", deprecated, announced(all, audio.token)],
    ["video", `/media/${video.token}`, pictures],
    ["video, deprecated", `/video/${video.token}`, announced(pictures, video.token)],
    ["upper case", `/audio/${audio.token.toUpperCase()}`, announced(all, audio.token)],
    ["a query", `${media}?download=1`, all],
    ["an absolute target", `http://elsewhere.test${media}`, all],
    ["dots in the path", `/x/..${media}`, all],
    ["percent-encoded", `/%6dedia/${audio.token.replaceAll("-", "%2D")}`, all],
    ["health", "/healthz", text("text/plain", "no-store, no-transform")],
    ["the notice", "/deprecation", text("text/html; charset=utf-8", FOUND)],
    ["the notice as JSON", "/deprecation", text("application/json", FOUND), {
      Accept: "application/problem+json, text/html;q=0",
    }],
    ["the description", "/openapi.json", text("application/json", FOUND)],

    ["another route", "/image/x", nowhere],
    ["a trailing slash", `${media}/`, nowhere],
    ["a doubled slash", `/${media}`, nowhere],
    ["a malformed token", "/media/x", malformed],
    ["a malformed token, deprecated", "/audio/x", announced(malformed)],
    ["version 1", "/video/5b6ea11c-9c5e-1b58-8f6b-0a7a6cf5d1e0", announced(malformed)],
    ["a long token", `/media/${"x".repeat(5000)}`, malformed],
    ["unknown", `/media/${unknown}`, never],
    ["unknown, deprecated", `/audio/${unknown}`, announced(never)],
    ["video as audio", `/audio/${video.token}`, announced(never, video.token)],
    ["audio as video", `/video/${audio.token}`, announced(never, audio.token)],
    ["unpublished", `/media/${unpublished}`, gone],
    ["unpublished, deprecated", `/audio/${unpublished}`, announced(gone)],
    ["unpublished audio as video", `/video/${unpublished}`, announced(never)],
    ["missing content", `/media/${missing}`, unavailable],
    ["missing content, deprecated", `/audio/${missing}`, announced(unavailable, missing)],
    ["cut content", `/media/${cut}`, changed],

    ["If-None-Match", media, fresh, same],
    ["If-None-Match, deprecated", deprecated, announced(fresh, audio.token), same],
    ["If-None-Match with any tag", media, fresh, { "If-None-Match": "*" }],
    ["If-None-Match with a list", media, fresh, { "If-None-Match": `"a,b", W/"c" ,, ${etag}` }],
    ["If-None-Match with other tags", media, all, { "If-None-Match": `${other}, "x"` }],
    ["If-Match", media, all, { "If-Match": etag }],
    ["If-Match with another tag", media, failed, { "If-Match": other }],
    ["If-Match, deprecated", deprecated, announced(failed, audio.token), { "If-Match": other }],
    ["If-Modified-Since", media, fresh, { "If-Modified-Since": LAST_MODIFIED }],
    ["If-Modified-Since earlier", media, all, { "If-Modified-Since": EARLIER }],
    ["If-Unmodified-Since", media, all, { "If-Unmodified-Since": LAST_MODIFIED }],
    ["If-Unmodified-Since earlier", media, failed, { "If-Unmodified-Since": EARLIER }],
    ["a condition on nothing", `/media/${unknown}`, never, { "If-None-Match": "*" }],
    ["If-None-Match before a range", media, fresh, { ...same, ...some }],
    ["If-Match before a range beyond", media, failed, { "If-Match": other, ...beyond }],

    ["a range", media, part(1, 2), some],
    ["a range, deprecated", deprecated, announced(part(1, 2), audio.token), some],
    ["the last bytes", media, part(990, 999), { Range: "bytes=-10" }],
    ["more than the whole", media, part(0, 999), { Range: "bytes=0-5000" }],
    ["two ranges", media, all, { Range: "bytes=0-1,5-6" }],
    ["a range beyond", media, unsatisfiable, beyond],
    ["a range beyond, deprecated", deprecated, announced(unsatisfiable, audio.token), beyond],
    ["a range of missing content", `/media/${missing}`, unavailable, some],
    ["If-Range with the tag", media, part(1, 2), { ...some, "If-Range": etag }],
    ["If-Range with the date", media, part(1, 2), { ...some, "If-Range": LAST_MODIFIED }],
    ["If-Range with another tag", media, all, { ...some, "If-Range": other }],
    ["If-Range before a range beyond", media, all, { ...beyond, "If-Range": other }],
  ];

  // Preconditions and ranges are ignored on a redirect, whose target has the validators.
  const ignored: Readonly<Record<string, string>>[] = [
    {},
    { "If-None-Match": '"there"' },
    { "If-Match": '"elsewhere"' },
    { "If-Modified-Since": LATER },
    { "If-Unmodified-Since": EARLIER },
    { Range: "bytes=5000-" },
    { Range: "bytes=0-1", "If-Range": '"there"' },
  ];
  for (const item of [linkedAudio, linkedVideo]) {
    const { kind, token } = item;
    for (const fields of ignored) {
      const [what, there] = [`${kind} at a URL ${Object.keys(fields)}`, redirected(item)];
      rows.push([what, `/media/${token}`, there, fields]);
      rows.push([`${what}, deprecated`, `/${kind}/${token}`, announced(there, token), fields]);
    }
    const other = kind === "audio" ? "video" : "audio";
    rows.push([`${kind} at a URL as ${other}`, `/${other}/${token}`, announced(never, token)]);
  }
  return rows.map(([what, target, outcome, fields]) => ({ what, target, fields, ...outcome }));
}

/** A response to compare, with field names in lower case. */
export interface Seen {
  readonly status: number;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly content: Uint8Array;
}

/** Reads a response for comparison. */
export async function seen(response: Response): Promise<Seen> {
  const content = await response.bytes();
  return { status: response.status, fields: [...response.headers], content };
}

/** Sends a request and returns the response. */
export type Send = (
  method: string,
  target: string,
  fields?: Readonly<Record<string, string>>,
) => Promise<Seen>;

/** Returns how to send requests to a handler without a socket. */
export function sendTo(handle: (request: Request) => Response | Promise<Response>): Send {
  return async (method, target, fields = {}) => {
    const url = URL.canParse(target) ? target : `http://test${target}`;
    return await seen(await handle(new Request(url, { method, headers: fields })));
  };
}

/**
 * Runs a row: checks the GET, and that the HEAD says the same without content. Range applies to GET
 * only (RFC 9110 §14.2), so the HEAD must match a GET without it.
 */
export async function runRow(row: Row, send: Send): Promise<void> {
  const fields = row.fields ?? {};
  const { Range: _range, "If-Range": _ifRange, ...unranged } = fields;
  const get = await send("GET", row.target, fields);
  const plainGet = Object.keys(unranged).length === Object.keys(fields).length
    ? get
    : await send("GET", row.target, unranged);
  const head = await send("HEAD", row.target, fields);
  checkExpected(row, get);
  checkParity(row.what, head, plainGet);
}

function checkExpected({ what, status, expect, problem, content }: Row, get: Seen): void {
  assertEquals(get.status, status, what);
  for (const [name, expected] of Object.entries(expect)) {
    assertEquals(valueOf(get, name) ?? null, expected, `${what}: ${name}`);
  }
  if (content !== undefined) assertEquals(get.content, content, what);
  if (status >= 400) checkProblem(what, get, problem as ProblemName);
}

/** Checks that an error has its problem type, and the same links as its fields. */
export function checkProblem(what: string, get: Seen, name: ProblemName): void {
  const { detail, instance, ...members } = JSON.parse(new TextDecoder().decode(get.content));
  assert(detail.length > 0, what);
  assertEquals(instance !== undefined, get.status >= 500 && name !== "brownout", what);
  const linked = (relation: string) =>
    new RegExp(`<([^>]*)>; rel="${relation}"`).exec(valueOf(get, "link") ?? "")?.[1];
  const [successor, documentation] = ["successor-version", "deprecation"].map(linked);
  assertEquals(members, {
    type: `/deprecation#${name}`,
    title: PROBLEM_TYPES[name].title,
    status: get.status,
    ...(successor === undefined ? {} : { successor }),
    ...(documentation === undefined ? {} : { documentation }),
  }, what);
}

/** Checks that a HEAD says what the GET says, without content. */
export function checkParity(what: string, head: Seen, get: Seen): void {
  assertEquals(head.content.length, 0, `${what}: content of the HEAD`);
  assertEquals(head.status, get.status, `${what}: status of the HEAD`);
  assertEquals(comparable(head), comparable(get), `${what}: fields of the HEAD`);
  const length = valueOf(get, "content-length");
  if (get.status !== 304) assertEquals(length, String(get.content.length), `${what}: length`);
}

/** Returns all fields except Date. */
function comparable({ fields }: Seen): string[] {
  return fields.filter(([name]) => name !== "date").map(([name, value]) => `${name}: ${value}`)
    .sort();
}

/** Returns the value of a field, which must not be repeated. */
export function valueOf({ fields }: Seen, name: string): string | undefined {
  const values = fields.filter(([other]) => other === name).map(([, value]) => value);
  assert(values.length <= 1, `${name} occurs ${values.length} times`);
  return values[0];
}
