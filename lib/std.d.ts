// The functions of the standard library in use here, declared as in its own sources: the npm package
// `deno-std` is the library itself, but ships no types. JSR does; with imports from there, delete
// this file and `tests/std.d.ts`, which has what only tests use.

declare module "@std/uuid/v4" {
  /** Whether a string is a version 4 UUID (RFC 9562 §5.4), in either case. */
  export function validate(id: string): id is ReturnType<typeof crypto.randomUUID>;
}

declare module "@std/async/abortable" {
  /** A promise that is rejected with the signal's reason as soon as that is aborted. */
  export function abortable<T>(p: Promise<T>, signal: AbortSignal): Promise<T>;
}

declare module "@std/async/delay" {
  /** A promise that is resolved after some milliseconds. */
  export function delay(ms: number): Promise<void>;
}

declare module "@std/csv/parse" {
  /**
   * The values of each line of CSV (RFC 4180).
   *
   * @throws {SyntaxError} If a quote is not closed, or is inside a value.
   */
  export function parse(input: string, options: { separator?: string }): string[][];
}

declare module "@std/html/entities" {
  /** A text whose character references are decoded. */
  export function unescape(
    str: string,
    options?: Partial<{ entityList: Record<string, string> }>,
  ): string;
}

declare module "@std/http/negotiation" {
  /** The best of the media types on offer, by the Accept field (RFC 9110 §12.5.1), if any. */
  export function accepts<T extends string = string>(
    request: Pick<Request, "headers">,
    ...types: T[]
  ): T | undefined;
}
