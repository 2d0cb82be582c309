/** Rows of items at URLs and of objects in place, for every engine. */

import { MAX_LOCATION, MAX_STATED } from "../../lib/storage/item.ts";

type Row = Readonly<{ [column: string]: string | number | null }>;

const LINKED = {
  token: "6f1d8c1e-6f0a-4d3e-9c3b-0a1b2c3d4e5f",
  kind: "video",
  location: "https://cdn.example/a.mp4",
  published_at: 1_000_000_000_000,
};
const TOMBSTONE = { token: LINKED.token, kind: "video", unpublished_at: 5 };
const DIGEST = "ab".repeat(32);
const IN_PLACE = {
  ...{ ...LINKED, location: "s3://media/ü a/b.mp4", validator: '"x-1"' },
  ...{ type: "video/mp4", length: 1, digest: DIGEST, name: "x", language: "de" },
};

/** Rows of items at URLs, and whether a database must accept them. */
export const LINKED_ROWS: readonly [what: string, row: Row, isSound: boolean][] = [
  ["an item at a URL", LINKED, true],
  ["all properties", { ...LINKED, type: "application/x", length: 0, validator: 'W/"x"' }, true],
  ["the longest URL", { ...LINKED, location: "http://".padEnd(MAX_LOCATION, "~") }, true],
  ["the longest type", { ...LINKED, type: "x".repeat(MAX_STATED) }, true],

  ["a URL without an instant", { ...LINKED, published_at: null }, false],
  ["a URL with a digest", { ...LINKED, digest: DIGEST }, false],
  ["a URL with a name", { ...LINKED, name: "x" }, false],
  ["a URL with a language", { ...LINKED, language: "de" }, false],
  ["a token of version 1", { ...LINKED, token: LINKED.token.replace("-4", "-1") }, false],
  ["a token of another variant", { ...LINKED, token: LINKED.token.replace("-9", "-c") }, false],
  ["another scheme", { ...LINKED, location: "ftp://cdn.example/" }, false],
  ["a scheme in upper case", { ...LINKED, location: "HTTPS://cdn.example/" }, false],
  ["a scheme alone", { ...LINKED, location: "https://" }, false],
  ["an empty URL", { ...LINKED, location: "" }, false],
  ["a URL with a space", { ...LINKED, location: "https://cdn.example/a b" }, false],
  ["a URL beyond ASCII", { ...LINKED, location: "https://cdn.example/é" }, false],
  ["a URL too long", { ...LINKED, location: "https://".padEnd(MAX_LOCATION + 1, "~") }, false],
  ["an empty type", { ...LINKED, type: "" }, false],
  ["a type too long", { ...LINKED, type: "x".repeat(MAX_STATED + 1) }, false],
  ["a type of two lines", { ...LINKED, type: "video/mp4\nx" }, false],
  ["a negative length", { ...LINKED, length: -1 }, false],
  ["an empty validator", { ...LINKED, validator: "" }, false],
  ["a validator too long", { ...LINKED, validator: "x".repeat(MAX_STATED + 1) }, false],
  ["a validator beyond ASCII", { ...LINKED, validator: '"é"' }, false],
  ["content with a validator", { ...IN_PLACE, location: null }, false],
  ["an object in place", IN_PLACE, true],
  ["an object in place without a validator", { ...IN_PLACE, validator: null }, false],
  ["an object in place without a digest", { ...IN_PLACE, digest: null }, false],
  ["an object in place without a length", { ...IN_PLACE, length: null }, false],
  ["an object in place of another type", { ...IN_PLACE, type: "text/html" }, false],
  ["an object of half a type", { ...IN_PLACE, type: "video/" }, false],
  ["an object of a blank type", { ...IN_PLACE, type: "video/ x" }, false],
  ["an object with a digest too short", { ...IN_PLACE, digest: DIGEST.slice(1) }, false],
  ["an object with a digest in upper case", { ...IN_PLACE, digest: "AB".repeat(32) }, false],
  ["an object without a bucket", { ...IN_PLACE, location: "s3:///a" }, false],
  ["a key that begins with a slash", { ...IN_PLACE, location: "s3://media//" }, true],
  ["a key with a line in it", { ...IN_PLACE, location: "s3://media/a\nb" }, true],
  ["an object without a key", { ...IN_PLACE, location: "s3://media/" }, false],
  ["a key too long", { ...IN_PLACE, location: "s3://a/".padEnd(MAX_LOCATION + 1, "~") }, false],
  ["a URL with content and a validator", { ...IN_PLACE, location: LINKED.location }, false],
  ["a tombstone with a URL", { ...TOMBSTONE, location: LINKED.location }, false],
  ["a tombstone with a validator", { ...TOMBSTONE, validator: "x" }, false],
];
