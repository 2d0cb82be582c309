/** What somebody's code may throw or return, and nothing can be read of. */

function fails(): never {
  throw new RangeError("not to be read");
}

/** Returns an error whose property throws when it is read. */
function without(name: "cause" | "message" | "name" | "stack"): Error {
  return Object.defineProperty(new Error("known"), name, { get: fails });
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** Such values, by what they are. */
export const UNREADABLE: Readonly<Record<string, unknown>> = {
  "an object without prototype": Object.create(null),
  "a toString that throws": { toString: fails },
  "a cause that throws": without("cause"),
  "a message that throws": without("message"),
  "a name that throws": without("name"),
  "a stack that throws": without("stack"),
  "a name that is a symbol": Object.assign(new Error("known"), { name: Symbol("name") }),
  "a symbol": Symbol("thrown"),
  "a proxy that was revoked": revoked({}),
  "the proxy of an error that was revoked": revoked(new Error("known")),
  "a proxy whose traps throw": new Proxy({}, { get: fails, getPrototypeOf: fails, has: fails }),
};
