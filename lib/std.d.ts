// The functions of the standard library in use here, declared as in its own sources: the npm package
// `deno-std` is the library itself, but ships no types. JSR does; with imports from there, delete
// this file.

// deno-lint-ignore-file no-explicit-any -- as in the originals

declare module "@std/uuid/v4" {
  /** Whether a string is a version 4 UUID (RFC 9562 §5.4), in either case. */
  export function validate(id: string): id is ReturnType<typeof crypto.randomUUID>;
}

declare module "@std/html/entities" {
  /** A text made safe in the content and in the attributes of an element. */
  export function escape(str: string): string;
  /** A text as it was before that. */
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

declare module "@std/assert" {
  export function assert(expr: unknown, msg?: string): asserts expr;
  export function assertEquals<T>(actual: T, expected: T, msg?: string): void;
  export function assertMatch(actual: string, expected: RegExp, msg?: string): void;
  export function assertStringIncludes(actual: string, expected: string, msg?: string): void;
  export function assertInstanceOf<T extends abstract new (...args: any[]) => any>(
    actual: unknown,
    expectedType: T,
    msg?: string,
  ): asserts actual is InstanceType<T>;
  export function assertRejects<E extends Error = Error>(
    fn: () => PromiseLike<unknown>,
    ErrorClass: abstract new (...args: any[]) => E,
    msgIncludes?: string,
    msg?: string,
  ): Promise<E>;
  export function assertThrows<E extends Error = Error>(
    fn: () => unknown,
    ErrorClass: abstract new (...args: any[]) => E,
    msgIncludes?: string,
    msg?: string,
  ): E;
}

declare module "@std/testing/mock" {
  export interface SpyCall<Self = any, Args extends unknown[] = any[], Return = any> {
    args: Args;
    returned?: Return;
    error?: Error;
    self?: Self;
  }
  /** A function that records its calls. */
  export interface Spy<Self = any, Args extends unknown[] = any[], Return = any> {
    (this: Self, ...args: Args): Return;
    original: (this: Self, ...args: Args) => Return;
    calls: SpyCall<Self, Args, Return>[];
    restored: boolean;
    restore(): void;
  }
  /** A method that records its calls in place of another, until it is disposed of. */
  export interface Stub<Self = any, Args extends unknown[] = any[], Return = any>
    extends Spy<Self, Args, Return>, Disposable {
    fake: (this: Self, ...args: Args) => Return;
  }
  type ParametersOf<Self, Prop extends keyof Self> = Self[Prop] extends
    (...args: infer Args) => unknown ? Args : unknown[];
  type ReturnOf<Self, Prop extends keyof Self> = Self[Prop] extends (...args: any[]) => infer Return
    ? Return
    : unknown;
  export function spy<Self, Args extends unknown[], Return>(
    func: (this: Self, ...args: Args) => Return,
  ): Spy<Self, Args, Return>;
  export function stub<Self, Prop extends keyof Self>(
    self: Self,
    property: Prop,
  ): Stub<Self, ParametersOf<Self, Prop>, ReturnOf<Self, Prop>>;
  export function stub<Self, Prop extends keyof Self>(
    self: Self,
    property: Prop,
    func: (this: Self, ...args: ParametersOf<Self, Prop>) => ReturnOf<Self, Prop>,
  ): Stub<Self, ParametersOf<Self, Prop>, ReturnOf<Self, Prop>>;
  export function assertSpyCalls<Self, Args extends unknown[], Return>(
    spy: Spy<Self, Args, Return>,
    expectedCalls: number,
  ): void;
  /** A function that resolves with each value in turn, and rejects with those that are errors. */
  export function resolvesNext<Return, Self = any, Args extends unknown[] = any[]>(
    iterable:
      | Iterable<Return | Error | Promise<Return | Error>>
      | AsyncIterable<Return | Error | Promise<Return | Error>>,
  ): (this: Self, ...args: Args) => Promise<Return>;
}
