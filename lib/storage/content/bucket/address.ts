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
  settings: BucketSettings,
  key: string,
  query: Readonly<Record<string, string>> = {},
): URL {
  const base = bucketUrlOf(settings);
  const search = Object.entries(query).map((pair) => pair.map(percentEncode).join("=")).join("&");
  return new URL(`${base}/${key.split("/").map(percentEncode).join("/")}${search && `?${search}`}`);
}

function bucketUrlOf({ bucket, endpoint, region }: BucketSettings): string {
  if (endpoint !== undefined) {
    return namesBucket(endpoint, bucket) ? endpoint : `${endpoint}/${bucket}`;
  }
  // Amazon's certificate is for `*.s3.…`, so it does not match a bucket with a dot in its name.
  return bucket.includes(".")
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`;
}

/**
 * Returns whether an endpoint is the address of the bucket itself: its host is the bucket's name, a
 * dot, and a name with another dot. `http://media.minio` is that of a store, and so is an IP address.
 */
function namesBucket(endpoint: string, bucket: string): boolean {
  const hostname = URL.parse(endpoint)?.hostname ?? "";
  return hostname.startsWith(`${bucket}.`) && /\.[a-z]/.test(hostname.slice(bucket.length + 1));
}

/**
 * Says how the endpoint was read, and how to write one that is read the other way; empty if there is
 * no other way, or the store's error code does not suggest one.
 */
export function readingOf({ bucket, endpoint }: BucketSettings, code = ""): string {
  if (endpoint === undefined) return "";
  if (namesBucket(endpoint, bucket)) {
    return `; the endpoint "${endpoint}" is read as the bucket's own address, because it begins with` +
      ` the bucket's name; if it is the store's, write "${endpoint}/${bucket}"`;
  }
  const other = endpoint.replace("://", `://${bucket}.`);
  if (!namesBucket(other, bucket) || !/Bucket|Domain/.test(code)) return "";
  return `; the endpoint "${endpoint}" is read as the store's address; if the store wants the bucket` +
    ` in the host, write "${other}"`;
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
