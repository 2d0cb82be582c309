/** Where content can be stored. */

/** A bucket of an S3-compatible object store, with its credentials. */
export interface BucketSettings {
  readonly kind: "bucket";
  readonly bucket: string;
  /** The prefix of all our keys, without the slash after it; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** The store's URL; Amazon S3 if left out. */
  readonly endpoint?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Milliseconds to wait for a free connection and the headers of an answer. */
  readonly timeoutMs: number;
}

/** Where content is stored, if anywhere. */
export type ContentPlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "none" }
  | BucketSettings;
