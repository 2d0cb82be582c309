/** Extensions from the request to what the gate, the report, the owner's page and `lifecycle check` say. */

import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import { formatInstant } from "../../lib/http/timestamp.ts";
import { definePolicy, type LifecycleCall } from "../../lib/lifecycle/mod.ts";
import { type LogEvent, openUsage, type Usage } from "../../lib/usage/mod.ts";
import { askGate } from "../support/gate.ts";
import { lifecycle } from "../support/lifecycle_cli.ts";
import { inFolder } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const DAY = 86_400_000;
const NOW = Math.floor(Date.now() / 1000) * 1000;
const [SUNSET, PAST, GONE, END] = [100, -30, -10, 200].map((days) => NOW + days * DAY) as [
  number,
  number,
  number,
  number,
];

const policyUntil = (sunset: number, ...brownouts: { start: Date; end: Date }[]) =>
  definePolicy({
    deprecatedAt: "2020-01-01",
    sunsetAt: new Date(sunset),
    brownouts,
    brownoutStatus: 503,
    documentation: "/why",
  });
const BROWNOUT = { start: new Date(NOW - 3_600_000), end: new Date(NOW + 3_600_000) };
const ROUTES = {
  "/soon": policyUntil(SUNSET),
  "/brownout": policyUntil(SUNSET, BROWNOUT),
  "/past": policyUntil(PAST),
};
type Route = keyof typeof ROUTES;

/** Who has more time on each route. The client "silent" never calls. */
const EXTENSIONS = {
  acme: new Date(END),
  gone: new Date(GONE),
  silent: new Date(END),
  7: "9999-01-01",
};

const WHO = {
  acme: { "X-User": "acme", "User-Agent": "okhttp/4.9" },
  "a number": { "X-User": "7" },
  gone: { "X-User": "gone" },
  another: { "X-User": "other" },
  // A program may give itself any name.
  "a program of that name": { "User-Agent": "acme/1.0" },
  "a page of that name": { "User-Agent": "Mozilla/5.0 Firefox/150.0", Origin: "https://acme" },
  "another in letter case": { "X-User": "Acme" },
  nobody: {},
  "one who cannot be known": { "X-User": "throw" },
} as const;

/** Who calls which route, what is answered, and the sunset that the client reads. */
const CALLS: [who: keyof typeof WHO, route: Route, status: number, sunset: number][] = [
  ["acme", "/soon", 200, END],
  ["acme", "/brownout", 200, END],
  ["acme", "/past", 200, END],
  ["a number", "/past", 200, Date.parse("9999-01-01")],
  ["gone", "/soon", 200, SUNSET],
  ["gone", "/brownout", 503, SUNSET],
  ["gone", "/past", 410, GONE],
  ["another", "/soon", 200, SUNSET],
  ["another", "/brownout", 503, SUNSET],
  ["another", "/past", 410, PAST],
  ["a program of that name", "/past", 410, PAST],
  ["a page of that name", "/past", 410, PAST],
  ["another in letter case", "/past", 410, PAST],
  ["nobody", "/past", 410, PAST],
  ["one who cannot be known", "/past", 410, PAST],
];

/** Authenticates a request. */
function userOf(name: string | null | undefined): string | number | null | undefined {
  if (name === "throw") throw new Error("no user");
  return name === "7" ? 7 : name;
}

/** The options of every route, and what `onCount` is told. */
function optionsOf(told: LifecycleCall[]) {
  return {
    extensions: EXTENSIONS,
    onCount: (call: LifecycleCall) => void told.push(call),
    route: ({ url }: { url: string }) => new URL(url).pathname,
  };
}

/** A server, with what ends it. */
interface Server extends AsyncDisposable {
  readonly url: (path: string) => string;
}

/** Serves the routes from a handler of either kind, after authentication. */
const SERVERS: Record<string, (usage: Usage, told: LifecycleCall[]) => Promise<Server>> = {
  "withLifecycle()": (usage, told) => {
    const handlers = Object.keys(ROUTES).map((route) => {
      const client = ({ headers }: Request) => userOf(headers.get("x-user"));
      const handler = (_: Request) => new Response("old", { headers: { "Content-Length": "3" } });
      return [route, usage.withLifecycle(handler, route, { ...optionsOf(told), client })] as const;
    });
    const routes = new Map(handlers);
    const missing = () => new Response(null, { status: 404 });
    return Promise.resolve(
      new Origin((request) => (routes.get(new URL(request.url).pathname) ?? missing)(request)),
    );
  },
  "retire()": async (usage, told) => {
    const middlewares = new Map(
      Object.keys(ROUTES).map((route) => {
        const client = ({ headers }: { headers: Record<string, unknown> }) =>
          userOf(headers["x-user"] as string | undefined);
        return [route, usage.retire(route, { ...optionsOf(told), client })];
      }),
    );
    const server = createServer((request, response) =>
      middlewares.get(request.url ?? "")?.(
        request,
        response,
        () => response.setHeader("Content-Length", 3).end("old"),
      )
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return {
      url: (path) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  },
};

/** Runs `lifecycle usage`, and returns its output. */
async function runQuietly(...words: string[]): Promise<string> {
  const { code, stdout } = await lifecycle("usage", ...words);
  assertEquals(code, 0);
  return stdout;
}

/** What a client gets, but for what differs by itself. */
async function got(server: Server, route: Route, who: keyof typeof WHO, method: string) {
  const response = await fetch(server.url(route), {
    method,
    headers: WHO[who],
    redirect: "manual",
  });
  const content = await response.text();
  const fields = [...response.headers].filter(([name]) => !/^(?:date|vary)$/.test(name));
  return { status: response.status, fields, headers: response.headers, content };
}

/** Follows extensions from requests to all that is said of them. */
async function follow(database: string, folder: string, kind: string): Promise<void> {
  const events: LogEvent[] = [];
  const usage = await openUsage(database, {
    routes: ROUTES,
    log: (event) => void events.push(event),
  });
  const told: LifecycleCall[] = [];
  {
    await using server = await (SERVERS[kind] as typeof SERVERS[string])(usage, told);
    for (const [who, route, status, sunset] of CALLS) {
      const answers = [
        await got(server, route, who, "GET"),
        await got(server, route, who, "HEAD"),
      ] as const;
      const [get, head] = answers;
      const note = `${who} ${route}`;
      assertEquals([get.status, get.headers.get("sunset")], [status, formatHttpDate(sunset)], note);
      assertEquals([head.status, head.fields], [get.status, get.fields], note);
      assertEquals(head.content, "");
      const { detail = "" } = status === 200 ? {} : JSON.parse(get.content);
      const ends = status === 410 ? ` at ${formatInstant(sunset)}` : "";
      assertMatch(
        detail,
        status === 410 ? new RegExp(`${ends}$`) : status === 503 ? /brownout/ : /^$/,
      );
      const calls = told.splice(0).map(({ status, breaks, phase }) => [status, breaks, phase]);
      const phase = { 200: "deprecated", 410: "removed", 503: "brownout" }[status];
      assertEquals(calls, [[status, true, phase], [status, true, phase]], note);
    }
    // It says the same as to the client, and finds no fault, before and after the sunset of others.
    for (
      const [route, who, state] of [
        ["/past", "acme", `200 .*: deprecated .* sunset ${formatInstant(END)}`],
        ["/brownout", "acme", `200 .*: deprecated .* sunset ${formatInstant(END)}`],
        ["/past", "gone", `410 .*: removed .* sunset ${formatInstant(GONE)}`],
        ["/past", "other", `410 .*: removed .* sunset ${formatInstant(PAST)}`],
      ]
    ) {
      const words = [server.url(route as string), "--header", `X-User: ${who}`];
      const { code, stdout } = await lifecycle("check", ...words);
      assertEquals(code, 0, stdout);
      assertMatch(stdout, new RegExp(`^${state}[^]*  no faults\n$`));
    }
  }
  await usage.close();
  const warnings = events.filter(({ event }) => event === "warning");
  const [first] = warnings;
  assertEquals(warnings.length, 2, "the extension of one client ends before two of the sunsets");
  assertEquals(first, {
    event: "warning",
    route: "/soon",
    message: `the extension of id gone until ${formatInstant(GONE)} has no effect: it does not ` +
      `end after the sunset at ${formatInstant(SUNSET)}`,
  });

  const [status, gate] = await askGate(database, "--route", "/past");
  assertEquals(status, 1, gate);
  const until = formatInstant(END);
  const lines = [
    `Announced until ${until} for id acme, id silent: `,
    "Announced until 9999-01-01T00:00:00Z for id 7: ",
    "No call to /past by id silent is on record: ",
    "No longer announced for id gone: ",
  ];
  for (const line of lines) assertStringIncludes(gate, `\n${line}`);
  assertMatch(
    gate,
    /\n {2}id acme, 2 calls on 1 day, last recorded at \S+ \(deprecated\), app okhttp\n/,
  );
  assertMatch(
    gate,
    /\n {2}id gone, 2 calls on 1 day, last recorded at \S+ \(removed\), app Deno\n/,
  );
  assertMatch(
    gate,
    /\n {2}app acme, 2 calls on 1 day, last recorded at \S+ \(removed\), release 1\.0\n/,
  );

  const [, text] = await askGate(database, "--json");
  const json = JSON.parse(text);
  const iso = (instant: number) => new Date(instant).toISOString();
  const isOn = (name: string) => ({ route }: { route: string }) => route === name;
  assertEquals(
    json.extensions.filter(isOn("/brownout")).map((each: { client: string }) => each.client),
    [
      "id 7",
      "id acme",
      "id silent",
    ],
  );
  assertEquals(
    json.extensions.filter(isOn("/past")),
    [
      ["id 7", Date.parse("9999-01-01"), false, true],
      ["id acme", END, false, true],
      ["id gone", GONE, true, true],
      ["id silent", END, false, false],
    ].map(([client, until, isExpired, isOnRecord]) => {
      return { route: "/past", client, until: iso(until as number), isExpired, isOnRecord };
    }),
  );
  assertEquals(json.verdicts.find(isOn("/past")).announcedUntil, iso(Date.parse("9999-01-01")));

  const usageOf = (...words: string[]) => runQuietly("--database", database, ...words);
  for (const line of lines.slice(0, 1)) {
    assertStringIncludes(await usageOf("--route", "/past"), `\n${line}`);
  }
  const [page, operators] = [`${folder}/acme.html`, `${folder}/all.html`];
  await usageOf("--client", "id acme", "--html", page);
  const html = await Deno.readTextFile(page);
  assertStringIncludes(html, `<time datetime="${until}">`);
  assertStringIncludes(html, "acme still calls paths that will be removed");
  for (const other of [SUNSET, PAST, GONE]) {
    assert(!html.includes(formatInstant(other)), "another date");
  }
  assert(!/silent|gone\b.*alone|ould be removed|id 7/.test(html), "another client");
  await usageOf("--client", "id gone", "--html", page);
  assertStringIncludes(await Deno.readTextFile(page), `<time datetime="${formatInstant(GONE)}">`);
  await usageOf("--client", "app acme", "--html", page);
  const program = await Deno.readTextFile(page);
  assertStringIncludes(program, `<time datetime="${formatInstant(PAST)}">`);
  assert(!program.includes(until));
  await usageOf("--html", operators);
  assertMatch(
    await Deno.readTextFile(operators),
    /<li>Announced until <time [^]*?<\/time> for id acme, id silent: deleting/,
  );
}

for (const kind of Object.keys(SERVERS)) {
  needing("files", "network", "environment")(
    `an extension of ${kind} is what its client gets and what is said of it, on SQLite`,
    () => inFolder((folder) => follow(`sqlite:${folder}/calls.sqlite`, folder, kind)),
  );
  needing(...POSTGRES)(
    `an extension of ${kind} is what its client gets and what is said of it, on PostgreSQL`,
    () =>
      inFolder(async (folder) => {
        const name = await postgres().createDatabase();
        await follow(postgres().urlOf(name), folder, kind);
      }),
  );
}

const client = () => "acme";
const SOON = ROUTES["/soon"];
const UNDATED = definePolicy({ deprecatedAt: "2020-01-01" });

/** Options that are refused, with the message. */
const WRONG: [policy: typeof SOON, options: Record<string, unknown>, message: string][] = [
  [
    SOON,
    { extensions: { acme: "9999-01-01" } },
    "client: expected a function that returns the ids of `extensions`, got undefined",
  ],
  [
    UNDATED,
    { client, extensions: { acme: "9999-01-01" } },
    "extensions: expected a policy with a sunset, got one without",
  ],
  [
    SOON,
    { client, extensions: "acme" },
    `extensions: expected an object with a date for each client's id, got "acme"`,
  ],
  [
    SOON,
    { client, extensions: null },
    "extensions: expected an object with a date for each client's id, got null",
  ],
  [
    SOON,
    { client, extensions: ["acme"] },
    "extensions: expected an object with a date for each client's id, got [object Array]",
  ],
  [
    SOON,
    { client, extensions: new Map([["acme", "9999-01-01"]]) },
    "extensions: expected an object with a date for each client's id, got [object Map]",
  ],
  [
    SOON,
    { client, extensions: { acme: "soon" } },
    'extensions["acme"]: expected an ISO 8601 date',
  ],
  [
    SOON,
    { client, extensions: { acme: "2027-12-31T12:00" } },
    'extensions["acme"]: expected an ISO 8601 date',
  ],
  [
    SOON,
    { client, extensions: { 'a"b': undefined } },
    'extensions["a\\"b"]: expected a Date, a Temporal.Instant, or an ISO 8601 date',
  ],
  [SOON, { client, extensions: { acme: new Date(NaN) } }, 'extensions["acme"]: expected a Date'],
  [
    SOON,
    { client, extensions: { "": "9999-01-01" } },
    'extensions: expected ids of 1 to 64 printable ASCII characters, without a space at either end, got ""',
  ],
  [SOON, { client, extensions: { "Zoë": "9999-01-01" } }, 'either end, got "Zoë"'],
  [SOON, { client, extensions: { " acme": "9999-01-01" } }, 'either end, got " acme"'],
  [SOON, { client, extensions: { ["a".repeat(65)]: "9999-01-01" } }, 'either end, got "aaa'],
];

needing("files")(
  "extensions that could not be kept are refused, with what was expected",
  () =>
    inFolder(async (folder) => {
      for (const [index, [policy, options, message]] of WRONG.entries()) {
        const path = `${folder}/${index}.sqlite`;
        const usage = await openUsage(`sqlite:${path}`, { routes: { "/v1": policy }, log() {} });
        for (
          const mount of [
            () => usage.retire("/v1", options),
            () => usage.withLifecycle(() => new Response(), "/v1", options),
          ]
        ) {
          const error = assertThrows(mount, TypeError);
          assertStringIncludes(error.message, message);
        }
        await usage.close();
        using database = new DatabaseSync(path);
        const mounted = database.prepare("SELECT policies FROM media_head_session").all();
        assertEquals(mounted.map(({ policies }) => policies), ["{}"]);
      }
    }),
);

needing("files")(
  "a date that is not after the sunset stops nobody, and is logged at each mount",
  () =>
    inFolder(async (folder) => {
      const events: LogEvent[] = [];
      const path = `sqlite:${folder}/calls.sqlite`;
      const log = (event: LogEvent) => void events.push(event);
      const usage = await openUsage(path, { routes: { "/v1": SOON }, log });
      const extensions = {
        early: new Date(SUNSET - 1000),
        equal: new Date(SUNSET),
        none: "1970-01-01",
      };
      const asked: string[] = [];
      const handler = usage.withLifecycle(
        (_: Request) => {
          asked.push("handler");
          return new Response("old", { headers: { "Cache-Control": "public, max-age=60" } });
        },
        "/v1",
        {
          extensions,
          client: () => {
            asked.push("client");
            return "equal";
          },
        },
      );
      usage.retire("/v1", { extensions: {} });
      const { headers } = await handler(new Request("http://test/v1"));
      assertEquals(headers.get("sunset"), formatHttpDate(SUNSET));
      assertMatch(headers.get("cache-control") ?? "", /^public, max-age=60, /);
      assertEquals(asked, ["handler", "client"], "the route is as if there were none");
      await usage.close();
      const warnings = events.filter(({ event }) => event === "warning");
      assertEquals(
        warnings.map(({ message }) =>
          /^the extension of id (\S+) until /.exec(String(message))?.[1]
        ),
        Object.keys(extensions),
      );
      const [, text] = await askGate(path, "--json");
      assertEquals(JSON.parse(text).extensions, []);
    }),
);

needing("files")(
  "the option client is asked once, before the handler, where there are extensions",
  () =>
    inFolder(async (folder) => {
      const path = `sqlite:${folder}/calls.sqlite`;
      const usage = await openUsage(path, { routes: { "/v1": SOON }, log() {} });
      const asked: string[] = [];
      let known: string | undefined; // what an authentication that comes too late sets
      const handler = usage.withLifecycle(
        (_: Request, word: string) => {
          asked.push(`handler ${word}`);
          known = "acme";
          return new Response("old");
        },
        "/v1",
        {
          extensions: { acme: new Date(END) },
          client: (_, word) => {
            asked.push(`client ${word}`);
            return known;
          },
        },
      );
      const sunsets: unknown[] = [];
      for (const word of ["first", "second"]) {
        const headers = { "User-Agent": "okhttp/4.9" };
        const response = await handler(new Request("http://test/v1", { headers }), word);
        sunsets.push(response.headers.get("sunset"));
      }
      assertEquals(asked, ["client first", "handler first", "client second", "handler second"]);
      assertEquals(sunsets, [formatHttpDate(SUNSET), formatHttpDate(END)]);
      await usage.close();
      const [, text] = await askGate(path, "--json");
      const { clients } = JSON.parse(text);
      const names = clients.map(({ client }: { client: string }) => client).toSorted();
      assertEquals(names, ["app okhttp", "id acme"], "who is on record got what the record says");
    }),
);

needing("files")(
  "a call of an extended client after the sunset needs the record, with its own date",
  () =>
    inFolder(async (folder) => {
      const usage = await openUsage(`sqlite:${folder}/calls.sqlite`, {
        routes: { "/v1": ROUTES["/past"] },
        log() {},
      });
      const handler = usage.withLifecycle((_: Request) => new Response("old"), "/v1", {
        extensions: { acme: new Date(END) },
        client: ({ headers }) => headers.get("x-user"),
      });
      await usage.close(); // from now on, the record takes no call
      const call = async (user: string) => {
        const response = await handler(
          new Request("http://test/v1", { headers: { "X-User": user } }),
        );
        await response.body?.cancel();
        const { status, headers } = response;
        return [
          status,
          headers.get("sunset"),
          headers.has("retry-after"),
          headers.get("cache-control"),
        ];
      };
      const none = "no-store, no-transform";
      assertEquals(await call("acme"), [503, formatHttpDate(END), true, none]);
      assertEquals((await call("other")).slice(0, 3), [410, formatHttpDate(PAST), false]);
    }),
);
