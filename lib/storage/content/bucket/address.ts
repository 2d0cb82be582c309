/** Addressing objects: as `s3://bucket/key` for people and the catalogue, by URL for requests. */

import { percentEncode } from "../../../http/percent_encoding.ts";
import type { BucketSettings } from "../content_place.ts";

/**
 * Returns the URL of an object, or of the bucket if the key is empty.
 *
 * @param key Must not have `.` or `..` between slashes, because URLs cannot represent them.
 * @param query Names and values, not encoded.
 */
export function urlOf(
  { bucket, endpoint, region }: BucketSettings,
  key: string,
  query: Readonly<Record<string, string>> = {},
): URL {
  // Amazon's certificate is for `*.s3.…`, so it does not match a bucket with a dot in its name.
  const base = endpoint === undefined && !bucket.includes(".")
    ? `https://${bucket}.s3.${region}.amazonaws.com`
    : `${endpoint ?? `https://s3.${region}.amazonaws.com`}/${bucket}`;
  const search = Object.entries(query).map((pair) => pair.map(percentEncode).join("=")).join("&");
  return new URL(`${base}/${key.split("/").map(percentEncode).join("/")}${search && `?${search}`}`);
}

/** Returns the key of an object; `undefined` if the location is invalid, or in another bucket. */
export function objectKeyIn(
  location: string,
  { bucket }: Pick<BucketSettings, "bucket">,
): string | undefined {
  const key = location.startsWith(`s3://${bucket}/`) ? location.slice(bucket.length + 6) : "";
  return key === "" || key.split("/").some((part) => /^\.\.?$/.test(part)) ? undefined : key;
}

/** Returns the location of an object, for the catalogue and messages. */
export function locationOf(key: string, { bucket }: Pick<BucketSettings, "bucket">): string {
  return `s3://${bucket}/${key}`;
}
