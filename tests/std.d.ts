// What only tests use of the standard library, declared as in `lib/std.d.ts`.

// deno-lint-ignore-file no-explicit-any -- as in the originals

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
  /** A function that records its calls. */
  export interface Spy<Self, Args extends unknown[], Return> {
    (this: Self, ...args: Args): Return;
    calls: { args: Args }[];
  }
  export function spy<Self, Args extends unknown[], Return>(
    func: (this: Self, ...args: Args) => Return,
  ): Spy<Self, Args, Return>;
  type Method<Self, Prop extends keyof Self> = Self[Prop] extends
    (...args: infer Args) => infer Return ? (this: Self, ...args: Args) => Return : never;
  /** Puts a method that records its calls in place of another, until it is disposed of. */
  export function stub<Self, Prop extends keyof Self>(
    self: Self,
    property: Prop,
    func?: Method<Self, Prop>,
  ): Spy<Self, Parameters<Method<Self, Prop>>, ReturnType<Method<Self, Prop>>> & Disposable;
  export function assertSpyCalls(spy: Spy<any, any[], any>, expectedCalls: number): void;
  /** A function that resolves with each value in turn, and rejects with those that are errors. */
  export function resolvesNext<Return>(
    iterable: Iterable<Return | Error>,
  ): (...args: any[]) => Promise<Return>;
}
