import { assertEquals, assertThrows } from "@std/assert";
import { WrongUsageError } from "../../../lib/errors/refused_error.ts";
import { type FrontRoute, readSettings } from "../../../lib/usage/front/settings.ts";

const LEAST = {
  upstream: "http://127.0.0.1:8000",
  listen: "127.0.0.1:8001",
  database: "sqlite:calls.sqlite",
  routes: { "/v1": { deprecatedAt: "2026-11-21" } },
};

const read = (settings: unknown, database?: string) =>
  readSettings(JSON.stringify(settings), { name: "a.json", database });

/** The faults of settings, each as `place: …`. */
function faultsOf(settings: unknown, database?: string): string[] {
  const { message } = assertThrows(() => read(settings, database), WrongUsageError);
  const [first, ...faults] = message.split("\n  ");
  assertEquals(first, "a.json:");
  return faults;
}

const placesOf = (settings: unknown) => faultsOf(settings).map((fault) => fault.split(": ")[0]);

Deno.test("readSettings() has a default for whatever may be left out", () => {
  const { upstream, listen, routes, ...others } = read(LEAST);
  assertEquals(upstream, {
    ...{ url: "http://127.0.0.1:8000", isSecure: false, host: "127.0.0.1", port: 8000 },
    socketPath: undefined,
  });
  assertEquals(listen, { name: "127.0.0.1:8001", host: "127.0.0.1", port: 8001 });
  assertEquals(others, {
    ...{ database: "sqlite:calls.sqlite", behindProxy: true, timeoutMs: 60_000 },
    ...{ retainDays: undefined, publicUrl: undefined, contact: undefined, notice: "/deprecation" },
  });
  const [{ policy, successor, clientField, answers } = {}] = routes;
  assertEquals(policy?.documentation, "/deprecation");
  assertEquals([successor, clientField, answers], [undefined, undefined, []]);
  const { database: _, ...rest } = LEAST;
  assertEquals(read(rest, "sqlite:b").database, "sqlite:b");
  assertEquals(read(LEAST, "sqlite:b").database, "sqlite:calls.sqlite");
});

Deno.test("readSettings() reads every setting", () => {
  const { routes: [route, other], ...settings } = read({
    upstream: "unix:/run/app.sock",
    listen: "unix:/run/front.sock",
    database: "postgres://a@b/c",
    ...{ behindProxy: false, timeout: 0.5, retainDays: 30, publicUrl: "https://example.com" },
    ...{ contact: "mailto:a@example.com", notice: "/old" },
    routes: {
      "/users/:id/avatar": {
        ...{ deprecatedAt: "2026-11-21", sunsetAt: "2027-06-30", brownoutStatus: 410 },
        ...{ brownouts: ["2027-05-03T09:00Z/PT1H"], afterSunset: "redirect" },
        ...{ documentation: "https://example.com/why", successor: "/people/:id/picture" },
        ...{ clientField: "X-Consumer-Id", answers: [404] },
      },
      "/v1": { deprecatedAt: "2026-11-21", successor: "https://new.example.com/v1" },
    },
  });
  assertEquals(settings, {
    upstream: {
      ...{ url: "unix:/run/app.sock", isSecure: false, host: undefined, port: undefined },
      socketPath: "/run/app.sock",
    },
    listen: { name: "unix:/run/front.sock", path: "/run/front.sock" },
    ...{ database: "postgres://a@b/c", behindProxy: false, timeoutMs: 500, retainDays: 30 },
    ...{ publicUrl: "https://example.com", contact: "mailto:a@example.com", notice: "/old" },
  });
  const { name, successor, clientField, answers, policy } = route as FrontRoute;
  assertEquals(
    [name, successor, clientField, answers, policy.documentation],
    ["/users/:id/avatar", "/people/:id/picture", "x-consumer-id", [404], "https://example.com/why"],
  );
  assertEquals(other?.policy.documentation, "/old");
});

Deno.test("readSettings() reports every fault at once, by its place", () => {
  assertEquals(
    placesOf({
      ...{ upstream: "http://a:b@127.0.0.1/", listen: "8001", database: "mysql://a", timeout: 0 },
      ...{ retainDays: 0.5, publicUrl: "a", contact: "a", notice: "old", upstreams: 1 },
      routes: {
        "/v1": {
          ...{ deprecatedAt: "2026-11-21", sunsetAt: "2026", brownout: [], successor: "/:id" },
          ...{ clientField: "a b", answers: [200] },
        },
        "/v1/*": {},
        "/a/:x": { deprecatedAt: "2026-11-21" },
        "/A/:y": { deprecatedAt: "2026-11-21" },
        "/b": 1,
      },
    }),
    [
      ...["upstreams", "upstream", "listen", "database", "timeout", "retainDays", "publicUrl"],
      ...["contact", "notice", "routes./v1.brownout", "routes./v1.successor"],
      ...["routes./v1.clientField", "routes./v1.answers", "routes./v1.sunsetAt", "routes./v1/*"],
      ...["routes./b", "routes./A/:y"],
    ],
  );
  assertEquals(placesOf({}), ["upstream", "listen", "database", "routes"]);
  for (const settings of [[], null, 1]) assertEquals(placesOf(settings), ["(the file)"]);
  for (const routes of [{}, [], "/v1"]) assertEquals(placesOf({ ...LEAST, routes }), ["routes"]);
});

Deno.test("readSettings() takes each setting only as it is meant", () => {
  const rows: [name: string, values: unknown[], isValid: boolean][] = [
    ["upstream", ["http://a", "https://a:1", "HTTP://[::1]:1/", "unix:/a"], true],
    ["upstream", ["http://a/b", "http://a?b", "http://a#b", "ftp://a", "a:1", "unix:a", 1], false],
    ["listen", ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/a"], true],
    ["listen", ["127.0.0.1", ":1", "127.0.0.1:65536", "a/b:1", "unix:", "127.0.0.1:0"], false],
    ["timeout", [0.1, 3600], true],
    ["timeout", [-1, 3601, "60", null], false],
    ["behindProxy", [true, false], true],
    ["behindProxy", ["true", 1, null], false],
    ["notice", ["/a/b"], true],
    ["notice", ["//a", "/a?b", "https://example.com/a", 1], false],
    ["publicUrl", ["http://a:1"], true],
    ["publicUrl", ["https://a:b@c", 1], false],
  ];
  for (const [name, values, isValid] of rows) {
    for (const value of values) {
      const settings = { ...LEAST, [name]: value };
      if (isValid) read(settings);
      else assertEquals(placesOf(settings), [name], `${value}`);
    }
  }
});

Deno.test("readSettings() asks whether a proxy is in front where others can reach the address", () => {
  for (const listen of ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.com:1"]) {
    assertEquals(placesOf({ ...LEAST, listen }), ["behindProxy"]);
    assertEquals(read({ ...LEAST, listen, behindProxy: false }).behindProxy, false);
  }
});

Deno.test("readSettings() takes what a route has only as it is meant, and no successor below it", () => {
  const withRoute = (name: string, value: unknown) => {
    return { ...LEAST, routes: { "/v1": { deprecatedAt: "2026-11-21", [name]: value } } };
  };
  const rows: [name: string, values: unknown[]][] = [
    ["clientField", [5]],
    ["answers", [404]],
    ["successor", [5, "/v1/new", "/V1", "/a/../v1"]],
  ];
  for (const [name, values] of rows) {
    for (const value of values) {
      assertEquals(placesOf(withRoute(name, value)), [`routes./v1.${name}`], `${value}`);
    }
  }
  read(withRoute("successor", "/v10"));
});

Deno.test("readSettings() shows no password, and takes a file with a byte order mark", () => {
  const [fault = ""] = faultsOf({ ...LEAST, database: "mysql://a:secret@b/c" });
  assertEquals(fault.includes("secret"), false, fault);
  readSettings(`\ufeff${JSON.stringify(LEAST)}`, { name: "a.json", database: undefined });
  assertThrows(
    () => readSettings("{", { name: "a.json", database: undefined }),
    WrongUsageError,
    "a.json: expected JSON: ",
  );
});
