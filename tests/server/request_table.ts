/**
 * A table of requests for every outcome, run against the handler and on the wire. Each row is sent
 * as GET and as HEAD, which must agree.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { PROBLEM_TYPES, type ProblemName } from "../../lib/server/problem_types.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { newToken, type Token } from "../../lib/storage/token.ts";
import type { LinkedItem, PublishedItem } from "../../lib/storage/storage.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import type { MediaSubject } from "../support/media_subject.ts";

/** A field's expected value: an exact value, a pattern, or `null` for absence. */
export type Expected = string | RegExp | null;

/** Expectations by lower-case field name. */
export type Expectation = Readonly<Record<string, Expected>>;

/** A request, and the expected response. */
export interface Row {
  readonly what: string;
  readonly target: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** The status of the GET. */
  readonly status: number;
  readonly expect?: Expectation;
  /** The problem type of the GET, required for every error. */
  readonly problem?: ProblemName;
  /** The content of the GET, unless it is a problem. */
  readonly content?: Uint8Array;
}

/** The items that the table requests. */
export interface TableItems {
  readonly audio: PublishedItem;
  readonly video: PublishedItem;
  /** At public URLs where nothing listens. */
  readonly linkedAudio: LinkedItem;
  readonly linkedVideo: LinkedItem;
  readonly unpublished: Token;
  /** An unpublished video that was at a public URL. */
  readonly unlinked: Token;
  /** Published, but the content file is gone. */
  readonly missing: Token;
  /** Published, but the content is truncated. */
  readonly cut: Token;
  /** The status that it answers. */
  readonly replaced: 502 | 503;
}

/** The content of the table's audio item. */
export const AUDIO = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);
const VIDEO = Uint8Array.from({ length: 300 }, (_, index) => index % 17);

/** 2001-09-09T01:46:40Z, a Sunday. */
const PUBLISHED_AT = 1_000_000_000_000;
const LAST_MODIFIED = "Sun, 09 Sep 2001 01:46:40 GMT";
const LATER = "Sun, 09 Sep 2001 01:46:41 GMT";
const EARLIER = "Sun, 09 Sep 2001 01:46:39 GMT";

/** The announcement that the table expects, for `DEPRECATED_AT` alone. */
export const DEPRECATED_AT = "2026-03-04T05:06:07Z";
const DEPRECATION = "@1772600767";
const DOCUMENTATION = '</deprecation>; rel="deprecation"';

/** The handler's configuration that the table expects. */
export const CONFIG = {
  cacheMaxAge: 300,
  policy: definePolicy({ deprecatedAt: DEPRECATED_AT, documentation: "/deprecation" }),
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
  await storage.publishLink(item);
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
  const unlinked = await publishLink(subject, "video", "gone.mp4");
  await subject.unpublish(unlinked.token, PUBLISHED_AT);
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
    unlinked: unlinked.token,
    missing: missing.token,
    cut: cut.token,
    replaced: subject.replaced ?? 503,
  };
}

/** Fields that describe content, or a range of it. */
const DESCRIBING = [
  ...["content-type", "content-range", "content-language", "content-disposition"],
  ...["accept-ranges", "etag", "last-modified", "repr-digest", "transfer-encoding"],
  "x-content-type-options",
];

/** Returns the rows for some items. */
export function requestTable(items: TableItems): Row[] {
  const { audio, video, linkedAudio, linkedVideo } = items;
  const { unpublished, unlinked, missing, cut, replaced } = items;
  const unknown = newToken();
  const media = `/media/${audio.token}`;
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
    "cache-control": "max-age=300",
    "repr-digest": /^sha-256=:[A-Za-z0-9+/]{43}=:$/,
    "x-content-type-options": "nosniff",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "*",
    deprecation: null,
    link: null,
    "transfer-encoding": null,
  };
  const notModified: Expectation = {
    etag,
    "last-modified": LAST_MODIFIED,
    "cache-control": "max-age=300",
    "access-control-allow-origin": "*",
    "content-type": null,
    "content-length": null,
    "content-disposition": null,
    "content-language": null,
    "repr-digest": null,
    "accept-ranges": null,
    "x-content-type-options": null,
  };
  const error: Expectation = {
    "content-type": "application/problem+json",
    "cache-control": "no-store",
    "access-control-allow-origin": "*",
    etag: null,
    "last-modified": null,
    "repr-digest": null,
  };
  const plain: Expectation = { deprecation: null, link: null };
  const deprecated = (token?: string): Expectation => ({
    deprecation: DEPRECATION,
    link: token === undefined
      ? DOCUMENTATION
      : `</media/${token}>; rel="successor-version", ${DOCUMENTATION}`,
  });
  const part = (first: number, last: number) => ({
    status: 206,
    expect: {
      ...whole,
      "content-length": String(last - first + 1),
      "content-range": `bytes ${first}-${last}/1000`,
    },
    content: AUDIO.slice(first, last + 1),
  });
  const all = { status: 200, expect: whole, content: AUDIO };
  const fresh = { status: 304, expect: notModified, content: new Uint8Array() };
  const failed = { status: 412, expect: error, problem: "precondition-failed" } as const;
  const unsatisfiable = {
    status: 416,
    expect: { ...error, "content-range": "bytes */1000" },
    problem: "range-not-satisfiable",
  } as const;

  const redirected = ({ location }: LinkedItem, expect: Expectation = plain) => ({
    status: 307,
    expect: {
      location,
      "cache-control": "max-age=300",
      "content-length": "0",
      "access-control-allow-origin": "*",
      "access-control-expose-headers": "*",
      ...Object.fromEntries(DESCRIBING.map((name) => [name, null])),
      ...expect,
    },
    content: new Uint8Array(),
  });

  const items200: Row[] = [
    { what: "audio at its replacement", target: media, ...all },
    {
      what: "audio at the deprecated path",
      target: `/audio/${audio.token}`,
      ...all,
      expect: { ...whole, ...deprecated(audio.token) },
    },
    {
      what: "video at the deprecated path",
      target: `/video/${video.token}`,
      status: 200,
      content: VIDEO,
      expect: {
        ...deprecated(video.token),
        "content-type": "video/mp4",
        "content-length": "300",
        "content-disposition": null,
        "content-language": null,
      },
    },
    {
      what: "video at its replacement",
      target: `/media/${video.token}`,
      status: 200,
      content: VIDEO,
    },
    {
      what: "a token in upper case",
      target: media.toUpperCase().replace("MEDIA", "media"),
      ...all,
    },
    {
      what: "a deprecated token in upper case",
      target: `/audio/${audio.token.toUpperCase()}`,
      ...all,
      expect: deprecated(audio.token),
    },
    { what: "a query", target: `${media}?download=1`, ...all },
    { what: "an absolute target", target: `http://elsewhere.test${media}`, ...all },
    { what: "dots in the path", target: `/x/..${media}`, ...all },
    {
      what: "unreserved characters percent-encoded",
      target: `/%61udio/${audio.token.replaceAll("-", "%2D")}`,
      ...all,
      expect: { ...whole, ...deprecated(audio.token) },
    },
    {
      what: "storage at work",
      target: "/healthz",
      status: 200,
      expect: { "cache-control": "no-store" },
    },
  ];

  const errors: Row[] = [
    {
      what: "the root",
      target: "/",
      status: 404,
      problem: "no-such-route",
      expect: { ...error, ...plain },
    },
    {
      what: "another route",
      target: "/image/x",
      status: 404,
      problem: "no-such-route",
      expect: { ...error, ...plain },
    },
    { what: "no token", target: "/media/", status: 404, problem: "no-such-route", expect: error },
    {
      what: "no token and no slash",
      target: "/audio",
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "a trailing slash",
      target: `${media}/`,
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "a doubled slash",
      target: `/${media}`,
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "another case",
      target: `/Media/${audio.token}`,
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "a longer path",
      target: `${media}/x`,
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "a health check with a slash",
      target: "/healthz/",
      status: 404,
      problem: "no-such-route",
      expect: error,
    },
    {
      what: "a malformed token",
      target: "/media/x",
      status: 400,
      problem: "malformed-token",
      expect: { ...error, ...plain },
    },
    {
      what: "a malformed token, deprecated",
      target: "/audio/x",
      status: 400,
      problem: "malformed-token",
      expect: { ...error, ...deprecated() },
    },
    {
      what: "a version 1 UUID",
      target: "/video/5b6ea11c-9c5e-1b58-8f6b-0a7a6cf5d1e0",
      status: 400,
      problem: "malformed-token",
      expect: { ...error, ...deprecated() },
    },
    {
      what: "a token with a percent sign",
      target: `/audio/%${audio.token}`,
      status: 400,
      problem: "malformed-token",
      expect: error,
    },
    {
      what: "an encoded slash",
      target: `/media/${audio.token}%2F`,
      status: 400,
      problem: "malformed-token",
      expect: error,
    },
    {
      what: "a very long token",
      target: `/media/${"x".repeat(5000)}`,
      status: 400,
      problem: "malformed-token",
      expect: error,
    },
    {
      what: "an unknown token",
      target: `/media/${unknown}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...plain },
    },
    {
      what: "an unknown token, audio",
      target: `/audio/${unknown}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated(unknown) },
    },
    {
      what: "an unknown token, video",
      target: `/video/${unknown}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated(unknown) },
    },
    {
      what: "video as audio",
      target: `/audio/${video.token}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated(video.token) },
    },
    {
      what: "audio as video",
      target: `/video/${audio.token}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated(audio.token) },
    },
    {
      what: "an unpublished item",
      target: `/media/${unpublished}`,
      status: 410,
      problem: "unpublished",
      expect: { ...error, ...plain },
    },
    {
      what: "an unpublished item, deprecated",
      target: `/audio/${unpublished}`,
      status: 410,
      problem: "unpublished",
      expect: { ...error, ...deprecated() },
    },
    {
      what: "an unpublished audio as video",
      target: `/video/${unpublished}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated() },
    },
    {
      what: "missing content",
      target: `/media/${missing}`,
      status: 503,
      problem: "storage-unavailable",
      expect: { ...error, "retry-after": "5" },
    },
    {
      what: "missing content, deprecated",
      target: `/audio/${missing}`,
      status: 503,
      problem: "storage-unavailable",
      expect: { ...error, ...deprecated(missing), "retry-after": "5" },
    },
    {
      what: "cut content",
      target: `/video/${cut}`,
      status: replaced,
      problem: replaced === 502 ? "content-replaced" : "storage-unavailable",
      expect: { ...error, ...deprecated(cut), "retry-after": replaced === 502 ? null : "5" },
    },
    {
      what: "conditions on an unknown token",
      target: `/media/${unknown}`,
      fields: { "If-None-Match": "*" },
      status: 404,
      problem: "never-published",
      expect: error,
    },
    {
      what: "conditions on an unpublished item",
      target: `/media/${unpublished}`,
      fields: { "If-Match": '"x"' },
      status: 410,
      problem: "unpublished",
      expect: error,
    },
    {
      what: "a range of missing content",
      target: `/media/${missing}`,
      fields: { Range: "bytes=0-1" },
      status: 503,
      problem: "storage-unavailable",
      expect: error,
    },
  ];

  const conditions: [
    what: string,
    fields: Record<string, string>,
    answer: typeof all | typeof fresh | typeof failed,
  ][] = [
    ["If-None-Match with the tag", { "If-None-Match": etag }, fresh],
    ["If-None-Match with the tag made weak", { "If-None-Match": `W/${etag}` }, fresh],
    ["If-None-Match with any", { "If-None-Match": "*" }, fresh],
    ["If-None-Match with a list", { "If-None-Match": `"a,b", W/"c" ,, ${etag}` }, fresh],
    ["If-None-Match with other tags", { "If-None-Match": `${other}, "${audio.digest},"` }, all],
    ["If-None-Match without quotes", { "If-None-Match": audio.digest }, all],
    ["If-Match with the tag", { "If-Match": etag }, all],
    ["If-Match with any", { "If-Match": "*" }, all],
    ["If-Match with the tag made weak", { "If-Match": `W/${etag}` }, failed],
    ["If-Match with another tag", { "If-Match": other }, failed],
    ["If-Match with a list", { "If-Match": `${other}, ${etag}` }, all],
    ["If-Match garbled", { "If-Match": "garbled" }, failed],
    ["If-Modified-Since the date", { "If-Modified-Since": LAST_MODIFIED }, fresh],
    ["If-Modified-Since later", { "If-Modified-Since": LATER }, fresh],
    ["If-Modified-Since earlier", { "If-Modified-Since": EARLIER }, all],
    ["If-Modified-Since in RFC 850's format", {
      "If-Modified-Since": "Sunday, 09-Sep-01 01:46:40 GMT",
    }, fresh],
    [
      "If-Modified-Since in asctime's format",
      { "If-Modified-Since": "Sun Sep  9 01:46:40 2001" },
      fresh,
    ],
    ["If-Modified-Since no HTTP-date", { "If-Modified-Since": "2030-01-01T00:00:00Z" }, all],
    ["If-Unmodified-Since the date", { "If-Unmodified-Since": LAST_MODIFIED }, all],
    ["If-Unmodified-Since earlier", { "If-Unmodified-Since": EARLIER }, failed],
    ["If-Unmodified-Since no HTTP-date", { "If-Unmodified-Since": "yesterday" }, all],
    [
      "If-Match before If-Unmodified-Since",
      { "If-Match": etag, "If-Unmodified-Since": EARLIER },
      all,
    ],
    ["If-None-Match before If-Modified-Since", {
      "If-None-Match": other,
      "If-Modified-Since": LATER,
    }, all],
    ["If-Match before If-None-Match", { "If-Match": other, "If-None-Match": etag }, failed],
    ["If-Match and If-None-Match", { "If-Match": etag, "If-None-Match": etag }, fresh],
    ["conditions before the range", { "If-None-Match": etag, Range: "bytes=0-1" }, fresh],
    ["a failed condition before a bad range", { "If-Match": other, Range: "bytes=5000-" }, failed],
  ];

  const ranges: [
    range: string,
    answer: typeof all | ReturnType<typeof part> | typeof unsatisfiable,
    ifRange?: string,
  ][] = [
    ["bytes=0-0", part(0, 0)],
    ["bytes=10-19", part(10, 19)],
    ["bytes=990-", part(990, 999)],
    ["bytes=-10", part(990, 999)],
    ["bytes=-5000", part(0, 999)],
    ["bytes=0-5000", part(0, 999)],
    ["BYTES=1-2", part(1, 2)],
    ["bytes=1000-", unsatisfiable],
    ["bytes=1000-2000", unsatisfiable],
    ["bytes=-0", unsatisfiable],
    ["bytes=2-1", all],
    ["bytes=-", all],
    ["bytes=a-b", all],
    ["bytes 0-1", all],
    ["items=0-1", all],
    ["bytes=0-1,5-6", all],
    ["bytes=10-19", part(10, 19), etag],
    ["bytes=10-19", part(10, 19), LAST_MODIFIED],
    ["bytes=10-19", all, other],
    ["bytes=10-19", all, `W/${etag}`],
    ["bytes=10-19", all, LATER],
    ["bytes=10-19", all, "*"],
    ["bytes=10-19", all, `${etag},`],
    ["bytes=5000-", all, other],
  ];

  // Preconditions and ranges are ignored on a redirect, whose target has the validators.
  const elsewhere: Readonly<Record<string, string>>[] = [
    {},
    ...conditions.map(([, fields]) => fields),
    ...ranges.map(([Range, , ifRange]) => ({
      Range,
      ...(ifRange === undefined ? {} : { "If-Range": ifRange }),
    })),
    { "If-None-Match": '"there"' },
    { "If-Match": '"there"' },
    { Range: "bytes=0-1", "If-Range": '"there"' },
  ];
  const links = [
    [linkedAudio, "audio"],
    [linkedVideo, "video"],
  ] as const;
  const linked: Row[] = links.flatMap(([item, kind]) => {
    const { token } = item;
    const other = kind === "audio" ? "video" : "audio";
    return [
      ...elsewhere.flatMap((fields) => {
        const what = `${kind} at a URL, ${JSON.stringify(fields).slice(0, 80)}`;
        const here = { what, target: `/media/${token}`, fields, ...redirected(item) };
        const old = redirected(item, deprecated(token));
        return [here, { what: `${what}, deprecated`, target: `/${kind}/${token}`, fields, ...old }];
      }),
      {
        what: `${kind} at a URL, by a token in upper case and with a query`,
        target: `/${kind}/${token.toUpperCase()}?download=1`,
        ...redirected(item, deprecated(token)),
      },
      {
        what: `${kind} at a URL as ${other}`,
        target: `/${other}/${token}`,
        fields: { "If-None-Match": "*" },
        status: 404,
        problem: "never-published",
        expect: { ...error, ...deprecated(token), location: null },
      },
    ];
  });
  const unlinkedRows: Row[] = [
    {
      what: "an item that was at a URL",
      target: `/media/${unlinked}`,
      status: 410,
      problem: "unpublished",
      expect: { ...error, ...plain, location: null },
    },
    {
      what: "an item that was at a URL, deprecated",
      target: `/video/${unlinked}`,
      fields: { "If-Match": "*", Range: "bytes=0-1" },
      status: 410,
      problem: "unpublished",
      expect: { ...error, ...deprecated(), location: null },
    },
    {
      what: "video that was at a URL as audio",
      target: `/audio/${unlinked}`,
      status: 404,
      problem: "never-published",
      expect: { ...error, ...deprecated(), location: null },
    },
  ];

  return [
    ...items200,
    ...errors,
    ...linked,
    ...unlinkedRows,
    ...conditions.map(([what, fields, answer]) => ({ what, target: media, fields, ...answer })),
    ...ranges.map(([range, answer, ifRange]) => ({
      what: ifRange === undefined ? range : `${range} if ${ifRange.slice(0, 20)}`,
      target: media,
      fields: { Range: range, ...(ifRange === undefined ? {} : { "If-Range": ifRange }) },
      ...answer,
    })),
    {
      what: "not modified at the deprecated path",
      target: `/audio/${audio.token}`,
      fields: { "If-None-Match": etag },
      ...fresh,
      expect: { ...notModified, ...deprecated(audio.token) },
    },
    {
      what: "a failed condition at the deprecated path",
      target: `/audio/${audio.token}`,
      fields: { "If-Match": other },
      ...failed,
      expect: { ...error, ...deprecated(audio.token) },
    },
    {
      what: "a bad range at the deprecated path",
      target: `/audio/${audio.token}`,
      fields: { Range: "bytes=1000-" },
      ...unsatisfiable,
      expect: { ...error, ...deprecated(audio.token), "content-range": "bytes */1000" },
    },
    {
      what: "a part at the deprecated path",
      target: `/audio/${audio.token}`,
      fields: { Range: "bytes=1-2" },
      ...part(1, 2),
      expect: deprecated(audio.token),
    },
  ];
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
  fields: Readonly<Record<string, string>>,
) => Promise<Seen>;

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

function checkExpected({ what, status, expect = {}, problem, content }: Row, get: Seen): void {
  assertEquals(get.status, status, what);
  for (const [name, expected] of Object.entries(expect)) {
    const value = valueOf(get, name);
    const note = `${what}: ${name}`;
    if (expected === null) assertEquals(value, undefined, note);
    else if (typeof expected === "string") assertEquals(value, expected, note);
    else assertMatch(value ?? "", expected, note);
  }
  if (content !== undefined) assertEquals(get.content, content, what);
  if (status >= 400) checkProblem(what, get, problem as ProblemName);
}

/** Checks that an error has its problem type, and the same links as its fields. */
export function checkProblem(what: string, get: Seen, name: ProblemName): void {
  const { detail, instance, ...members } = JSON.parse(new TextDecoder().decode(get.content));
  assert(detail.length > 0, what);
  assertEquals(instance !== undefined, get.status >= 500, what);
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
