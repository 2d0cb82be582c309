/**
 * Where objects are: `s3://bucket/key` for people and on record, URLs for requests.
 */

import type { BucketSettings } from "../content.ts";

/**
 * The URL of an object, or of the bucket.
 *
 * @param key Its parts between slashes are neither `.` nor `..`, which no URL can hold.
 * @param query Names and values, not encoded.
 */
export function urlOf(
  { bucket, endpoint, region }: BucketSettings,
  key: string,
  query: Readonly<Record<string, string>> = {},
): URL {
  const base = endpoint === undefined
    ? `https://${bucket}.s3.${region}.amazonaws.com`
    : `${endpoint}/${bucket}`;
  const search = Object.entries(query).map((pair) => pair.map(encode).join("=")).join("&");
  return new URL(`${base}/${key.split("/").map(encode).join("/")}${search && `?${search}`}`);
}

/** The key of an object of a bucket; `undefined` for what is none, or of another bucket. */
export function keyOf(
  location: string,
  { bucket }: Pick<BucketSettings, "bucket">,
): string | undefined {
  const key = location.startsWith(`s3://${bucket}/`) ? location.slice(bucket.length + 6) : "";
  return key === "" || key.split("/").some((part) => /^\.\.?$/.test(part)) ? undefined : key;
}

/** How an object is named on record and in messages. */
export function locationOf(key: string, { bucket }: Pick<BucketSettings, "bucket">): string {
  return `s3://${bucket}/${key}`;
}

/** All but unreserved characters percent-encoded, as they are signed. */
function encode(part: string): string {
  return encodeURIComponent(part)
    .replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
