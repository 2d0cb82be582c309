/** Which requests `lifecycle front` retires, and how: routes, clients, the notice, and where it listens. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createCertificate } from "../support/certificate.ts";
import {
  deprecated,
  FrontProcess,
  installed,
  OK,
  requestOf,
  runLifecycle,
  test,
  writeSettings,
} from "../support/front.ts";
import { NPM } from "../support/npm.ts";
import { LINUX, needing, program } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { answerAll, ask, HandBackend, Wire } from "../support/wire.ts";
import { until } from "../support/within.ts";

/** Returns a field of a response; `undefined` if it has none. */
const field = (response: string, name: string) =>
  RegExp(`^${name}: (.*)\r$`, "mi").exec(response)?.[1];

/** Starts a proxy in front of a backend that answers everything alike, and keeps what it got. */
async function startBoth(settings: object = {}, answer = OK) {
  const got: string[] = [];
  const backend = new HandBackend(async (wire) => {
    for (let head; (head = await wire.head()) !== undefined;) {
      got.push(head.replace(/^Lifecycle-Front: .*\r\n/m, "").replace(/^Connection: .*\r\n/m, ""));
      await wire.write(
        head.startsWith("HEAD") ? answer.replace(/\r\n\r\n.*$/s, "\r\n\r\n") : answer,
      );
    }
  });
  const front = await FrontProcess.start({ upstream: backend.url, ...settings });
  return {
    ...{ backend, front, got },
    async [Symbol.asyncDispose]() {
      await front[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
    },
  };
}

test("each target is passed on as it is spelled, and retired as it is read", async () => {
  await using both = await startBoth({
    routes: {
      "/v1": deprecated({ successor: "/v2" }),
      "/users/:id/avatar": deprecated({ successor: "/people/:id/picture" }),
      "/a": deprecated(),
    },
  });
  const rows: [target: string, successor?: string | null][] = [
    ["/v1/a%2Fb?c=/v1#d", "/v2/a%2Fb?c=/v1"],
    ["/v2/../v1/x", "/v2/x"],
    ["//v1/x", "/v2/x"],
    ["/users/%E4/avatar", "/people/%E4/picture"],
    ["/a/b", null],
    ["/v10"],
  ];
  for (const [target, successor] of rows) {
    const response = await both.front.ask("GET", target);
    assertStringIncludes(both.got.at(-1) ?? "", `GET ${target} HTTP/1.1\r\n`);
    assertEquals(
      field(response, "Deprecation"),
      successor === undefined ? undefined : "@1577836800",
    );
    const [, link] = /<([^>]*)>; rel="successor-version"/.exec(field(response, "Link") ?? "") ?? [];
    assertEquals(link, successor ?? undefined, target);
  }
  // Bytes that no URI has are refused by Node.
  const response = await both.front.ask("GET", "/users/\xe4/avatar");
  assertMatch(response, /^HTTP\/1\.1 400 /);
});

test("a refusal never reaches the server behind, and is the same for HEAD and GET", async () => {
  const [past, away] = [{ sunsetAt: "2021-01-01" }, { sunsetAt: "9000-01-02" }];
  const brownouts = ["2020-01-01/9000-01-01"];
  await using both = await startBoth({
    routes: {
      "/gone": deprecated({ ...past, successor: "/new" }),
      "/moved": deprecated({ ...past, afterSunset: "redirect", successor: "/new" }),
      "/brown": deprecated({ ...away, brownouts, successor: "/new" }),
      "/brown410": deprecated({ ...away, brownouts, brownoutStatus: 410 }),
    },
  });
  const rows = [["/gone", 410], ["/moved", 308], ["/brown", 503], ["/brown410", 410]] as const;
  for (const [path, status] of rows) {
    const [get = "", head = ""] = await Promise.all(
      ["GET", "HEAD"].map((method) => both.front.ask(method, `${path}/x`)),
    );
    assertMatch(get, RegExp(`^HTTP/1\\.1 ${status} `));
    const plain = (text: string) => text.replace(/^Date: .*\r\n/m, "");
    assertEquals(plain(head), plain(get).replace(/(?<=\r\n\r\n).*$/s, ""));
    assertMatch(get, path === "/brown410" ? /"status":410/ : /\/new\/x/);
  }
  const upgrade = requestOf("GET", "/gone").replace("close", "Upgrade\r\nUpgrade: websocket");
  assertMatch(await ask(both.front.port, upgrade), /^HTTP\/1\.1 410 /);
  assertEquals(both.got, []);
  assertMatch(await both.front.ask("OPTIONS", "/gone"), /^HTTP\/1\.1 200 /);
});

test("lifecycle check finds no fault in what front announces", async () => {
  const next = { sunsetAt: new Date(Date.now() + 90_000).toISOString(), successor: "/v2" };
  const answer = OK.replace("\r\n", "\r\nCache-Control: max-age=864000\r\n");
  await using both = await startBoth({ routes: { "/v1": deprecated(next) } }, answer);
  const url = `http://127.0.0.1:${both.front.port}/v1/songs`;
  const { code, text } = await runLifecycle(["check", url]);
  assertEquals(code, 0, text);
  assertMatch(text, /: deprecated \(/);
  const [, age] = /max-age=(\d+)/.exec(await both.front.ask("GET", "/v1")) ?? [];
  assert(Number(age) < 90, age); // which ends with the phase
});

test("fields that say who the client is pass behind a proxy, and are replaced elsewhere", async () => {
  const said =
    "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nForwarded: for=9.9.9.9\r\n" +
    "X-Real-IP: 9.9.9.9\r\nX_Forwarded_For: 9.9.9.9\r\nX-Forwarded-Prefix: /x\r\n";
  const request = requestOf("GET", "/v1", said)
    .replace("close", "close, X-Forwarded-For, x-forwarded-proto, forwarded");
  await using behind = await startBoth();
  await ask(behind.front.port, request);
  assertEquals(behind.got, [`GET /v1 HTTP/1.1\r\nHost: a\r\n${said}\r\n`]);

  await using alone = await startBoth({ behindProxy: false });
  await ask(alone.front.port, request);
  assertEquals(alone.got, [
    "GET /v1 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n" +
    "X-Forwarded-Host: a\r\n\r\n",
  ]);
});

test("a request that comes back is refused, also by way of another proxy", async () => {
  const [one, other] = [freePort(), freePort()];
  const start = (listen: number, upstream: number) =>
    FrontProcess.start({
      ...{ listen: `127.0.0.1:${listen}`, upstream: `http://127.0.0.1:${upstream}` },
    });
  await using _one = await start(one, other);
  await using _other = await start(other, one);
  const response = await ask(one, requestOf("GET", "/v1"));
  assertMatch(response, /^HTTP\/1\.1 508 Loop Detected\r\n[^]*The server behind/);

  await using both = await startBoth();
  const settings = { upstream: `http://127.0.0.1:${both.front.port}` };
  await using chained = await FrontProcess.start(settings);
  assertMatch(await chained.ask("GET", "/v1"), /^HTTP\/1\.1 200 /);
});

test("the notice is for people and for programs, and for HEAD as for GET", async () => {
  await using both = await startBoth({
    ...{ notice: "/sunsets", contact: "mailto:api@example.com" },
    routes: {
      "/v1": deprecated({ sunsetAt: "9000-01-01", successor: "/v2" }),
      "/users/:id/avatar": deprecated({ sunsetAt: "2021-01-01" }),
    },
  });
  for (const accept of ["text/html", "application/json"]) {
    const [get = "", head = ""] = await Promise.all(
      ["GET", "HEAD"].map((method) =>
        both.front.ask(method, "/sunsets?a", `Accept: ${accept}\r\n`)
      ),
    );
    const plain = (text: string) => text.replace(/^Date: .*\r\n/m, "");
    const [fields = "", content = ""] = plain(get).split(/(?<=\r\n\r\n)/);
    assertEquals(plain(head), fields);
    assertMatch(fields, /^HTTP\/1\.1 200 OK\r\n[^]*Vary: Accept\r\n/);
    if (accept === "text/html") {
      assertStringIncludes(content, "<code>/v1</code> becomes <code>/v2</code>");
      assertStringIncludes(content, "mailto:api@example.com");
      assertStringIncludes(content, "/users/{id}/avatar</code> was removed");
      assertMatch(fields, /^Content-Security-Policy: default-src 'none'; /m);
    } else {
      const { contact, endpoints } = JSON.parse(content);
      assertEquals(contact, "mailto:api@example.com");
      assertEquals(endpoints.map(({ path, phase }: Record<string, string>) => [path, phase]), [
        ["/v1", "deprecated"],
        ["/users/{id}/avatar", "removed"],
      ]);
    }
  }
  const response = await both.front.ask("POST", "/sunsets");
  assertMatch(response, /^HTTP\/1\.1 405 [^]*\r\nAllow: GET, HEAD\r\n/);
  assertEquals(both.got, []);
  await both.front.ask("GET", "/sunsets/a");
  assertEquals(both.got.length, 1);
  const old = await both.front.ask("GET", "/v1");
  assertStringIncludes(old, '</sunsets>; rel="deprecation", </sunsets>; rel="sunset"');
});

test("it listens on a socket and forwards to one, also where a killed one was left", async () => {
  const { folder } = installed();
  const [behind, before] = [`${folder}/app.sock`, `${folder}/front.sock`];
  const listener = Deno.listen({ transport: "unix", path: behind });
  await using _backend = new HandBackend((wire) => answerAll(wire, OK), listener);
  const settings = { upstream: `unix:${behind}`, listen: `unix:${before}` };
  const killed = await FrontProcess.start(settings);
  assertMatch(
    await ask(before, requestOf("GET", "/v1")),
    /^HTTP\/1\.1 200 OK\r\n[^]*\r\nDeprecation/,
  );
  const file = await writeSettings({
    ...settings,
    database: `sqlite:${folder}/other.sqlite`,
    routes: { "/v1": deprecated() },
  });
  const second = await runLifecycle(["front", file]);
  assertEquals(second.code, 1);
  assertStringIncludes(second.errors, `listen: cannot listen on unix:${before} (`);
  await killed[Symbol.asyncDispose]();
  assert((await Deno.lstat(before)).isSocket);
  await using front = await FrontProcess.start(settings);
  assertMatch(await ask(before, requestOf("GET", "/v1")), /^HTTP\/1\.1 200 OK\r\n/);
  assertEquals((await Deno.stat(before)).mode! & 0o777, 0o666);
  await front.stop();
});

needing(...NPM, LINUX, program("openssl"))(
  "it forwards to https:, and checks who answers",
  async () => {
    const { folder } = installed();
    const { certificate, key } = await createCertificate(folder);
    const listener = Deno.listenTls({
      ...{ hostname: "127.0.0.1", port: 0 },
      ...{ cert: await Deno.readTextFile(certificate), key: await Deno.readTextFile(key) },
    });
    await using backend = new HandBackend((wire) => answerAll(wire, OK), listener);
    const settings = { upstream: `https://127.0.0.1:${backend.port}` };
    const env = { NODE_EXTRA_CA_CERTS: certificate };
    await using front = await FrontProcess.start(settings, { env });
    for (const method of ["GET", "POST", "HEAD"]) {
      assertMatch(await front.ask(method, "/v1"), /^HTTP\/1\.1 200 OK\r\n/);
    }
    await using wary = await FrontProcess.start(settings);
    assertMatch(await wary.ask("GET", "/v1"), /^HTTP\/1\.1 502 /);
    assertStringIncludes(`${wary.events("error")[0]?.["cause"]}`, "self-signed certificate");
  },
);

test("an upload that has begun is served, though a brownout begins meanwhile", async () => {
  const size = 50_000_000; // more than any buffer has room for
  await using backend = new HandBackend(async (wire) => {
    const head = await wire.head() ?? "";
    if (head.startsWith("GET") || await wire.skip(size) === size) await wire.write(OK);
  });
  const start = Math.ceil(Date.now() / 1_000 + 4) * 1_000;
  const at = (ms: number) => new Date(ms).toISOString();
  const brownouts = [`${at(start)}/${at(start + 3_600_000)}`];
  const routes = { "/v1": deprecated({ brownouts, sunsetAt: "9000-01-01" }) };
  await using front = await FrontProcess.start({ upstream: backend.url, routes });
  using client = await Wire.to(front.port);
  await client.write(requestOf("POST", "/v1", `Content-Length: ${size}\r\n`));
  await client.send(new Uint8Array(1_000_000));
  assert(Date.now() < start, "the upload has to begin earlier");
  await until(
    "the brownout",
    async () => (await front.ask("GET", "/v1")).startsWith("HTTP/1.1 503"),
  );
  const block = new Uint8Array(1_000_000);
  for (let left = size - block.length; left > 0; left -= block.length) await client.send(block);
  assertMatch(await client.all(), /^HTTP\/1\.1 200 OK\r\n/);
  await front.stop();
});
