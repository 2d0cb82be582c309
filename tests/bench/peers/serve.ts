/** What the peers on Deno have in common: the response to send, and how they listen. */

/** A response: what media-head sends in the same case. */
export interface Expected {
  readonly status: number;
  readonly headers: [name: string, value: string][];
  /** Bytes of content. */
  readonly length: number;
}

/** The fields that a GET needs. */
export const GET_FIELDS = [
  "accept-ranges",
  "cache-control",
  "content-length",
  "content-range",
  "content-type",
  "etag",
  "last-modified",
];

/** Returns the response to send, which is the first argument. */
export function readExpected(): Expected {
  return JSON.parse(Deno.args[0] ?? "");
}

/** Serves on an ephemeral port, and prints it for the bench. */
export function serve(handler: (request: Request) => Response | Promise<Response>): void {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    automaticCompression: false,
    onListen: ({ port }) => console.error(JSON.stringify({ port })),
  }, handler);
}
