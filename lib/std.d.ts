// Types of the standard library functions used here: the npm package `deno-std` is the library
// itself, but ships none. Moving the imports to JSR brings its own types; then delete this file.

declare module "@std/uuid/v4" {
  /** Whether a string is a version 4 UUID (RFC 9562 §5.4), in either case. */
  export function validate(id: string): boolean;
}

declare module "@std/html/entities" {
  /** A text made safe in the content and in the attributes of an element. */
  export function escape(text: string): string;
  /** A text as it was before that. */
  export function unescape(text: string): string;
}

declare module "@std/http/negotiation" {
  /** The best of the media types on offer, by the Accept field (RFC 9110 §12.5.1), if any. */
  export function accepts(
    request: Pick<Request, "headers">,
    ...types: string[]
  ): string | undefined;
}

declare module "@std/assert" {
  export function assert(condition: unknown, message?: string): asserts condition;
  export function assertEquals<T>(actual: T, expected: T, message?: string): void;
  export function assertMatch(actual: string, expected: RegExp, message?: string): void;
  export function assertStringIncludes(actual: string, expected: string, message?: string): void;
  export function assertInstanceOf<T>(
    actual: unknown,
    // deno-lint-ignore no-explicit-any -- any constructor, whatever it takes
    expected: new (...args: any[]) => T,
    message?: string,
  ): asserts actual is T;
  export function assertRejects<E extends Error>(
    fn: () => PromiseLike<unknown>,
    // deno-lint-ignore no-explicit-any -- any constructor, whatever it takes
    error: new (...args: any[]) => E,
    includes?: string,
  ): Promise<E>;
  export function assertThrows<E extends Error>(
    fn: () => unknown,
    // deno-lint-ignore no-explicit-any -- any constructor, whatever it takes
    error: new (...args: any[]) => E,
    includes?: string,
  ): E;
}

declare module "@std/testing/mock" {
  /** A function that records its calls. */
  export type Spy<F extends (...args: never[]) => unknown> = F & {
    readonly calls: readonly { readonly args: Parameters<F> }[];
  };
  // deno-lint-ignore no-explicit-any -- any function, whatever it takes
  export function spy<F extends (...args: any[]) => unknown>(fn: F): Spy<F>;
  /** Replaces a method until it is disposed of. */
  // deno-lint-ignore no-explicit-any -- any method, whatever it takes
  export function stub<T extends Record<K, (...args: any[]) => unknown>, K extends string>(
    self: T,
    method: K,
    fn?: T[K],
  ): Spy<T[K]> & Disposable;
  export function assertSpyCalls(
    spy: { readonly calls: readonly unknown[] },
    count: number,
  ): void;
  /** A function that resolves with each value in turn, and rejects with those that are errors. */
  export function resolvesNext<T>(values: readonly T[]): () => Promise<Exclude<T, Error>>;
}
