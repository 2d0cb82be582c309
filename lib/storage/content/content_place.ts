/** The places where content can be stored. */

/** A bucket of an S3-compatible object store, with its credentials. */
export interface BucketSettings {
  readonly kind: "bucket";
  readonly bucket: string;
  /** The prefix of all keys, without its final slash; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** The store's URL; Amazon S3 if left out. */
  readonly endpoint?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Milliseconds to wait for a free connection and the headers of a response. */
  readonly timeoutMs: number;
}

/** The place where content is stored, if any. */
export type ContentPlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "none" }
  | BucketSettings;
