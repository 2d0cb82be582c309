/**
 * What goes wrong in front of `lifecycle front` and behind it, on every Node: servers that do not
 * answer, connections that break, uploads that are refused, WebSockets, and content of any length.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import {
  deprecated,
  type FrontOptions,
  FrontProcess,
  installed,
  OK,
  onEachNode,
  requestOf,
  test as once,
} from "../support/front.ts";
import { freePort } from "../support/ports.ts";
import { answerAll, ask, HandBackend, Wire } from "../support/wire.ts";
import { until, within } from "../support/within.ts";

/** Registers a test of a proxy on every Node. */
const test = (name: string, use: (options: FrontOptions) => Promise<void>) =>
  once(`front ${name}`, () => onEachNode(use));

/** The rows of a record, as `route method status class impact × calls`. */
function rowsOf(database: string): string[] {
  using record = new DatabaseSync(database, { readOnly: true });
  return record.prepare(
    `SELECT route, method, phase, status, impact, client, calls FROM media_head_usage
      ORDER BY route, method, phase, status`,
  ).all().map((row) => Object.values(row).join(" "));
}

test("asks once more, on a new connection, for what can be asked twice", async (options) => {
  const got: string[] = [];
  await using backend = new HandBackend(async (wire, count) => {
    for (let first = count === 1;; first = false) {
      const head = await wire.until("\r\n");
      if (head === undefined) return;
      got.push(`${count} ${head.split(" ")[0]}`);
      if (count === 1 && !first) return; // closed before the request is read, which resets it
      await wire.head();
      await wire.write(OK);
    }
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  for (const method of ["GET", "HEAD"]) {
    assertMatch(await front.ask(method, "/v1/a"), /^HTTP\/1\.1 200 /);
  }
  assertEquals(got, ["1 GET", "1 HEAD", "2 HEAD"]);
  assertEquals(front.events("error"), []);
  await front.stop();
});

test("asks no more for a client that has left", async (options) => {
  await using backend = new HandBackend(async (wire, count) => {
    await wire.head();
    await wire.write(OK);
    if (count === 1) await wire.all(); // the next request is not answered
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  await front.ask("GET", "/v1/a");
  using client = await Wire.to(front.port);
  await client.write(requestOf("GET", "/v1/a"));
  await new Promise((resolve) => setTimeout(resolve, 200));
  client[Symbol.dispose]();
  await until("the end of the connection", () => backend.open === 0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assertEquals(backend.count, 1);
  await front.stop();
});

test("loses no POST while the server behind closes idle connections", async (options) => {
  const seen = new Map<string, number>();
  await using backend = new HandBackend(async (wire) => {
    for (let head; (head = await wire.head()) !== undefined;) {
      const [, id = "none"] = /X-Id: (\d+)/.exec(head) ?? [];
      seen.set(id, (seen.get(id) ?? 0) + 1);
      if (head.startsWith("POST")) await wire.until("content");
      await wire.write(OK);
      if (Number(id) % 3 === 0) return; // which nothing has announced
    }
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  for (let id = 1; id <= 100; id++) {
    const post = requestOf("POST", "/v1/a", `X-Id: ${id}\r\nContent-Length: 7\r\n`) + "content";
    const get = requestOf("GET", "/v1/a", `X-Id: ${1_000 + id}\r\n`);
    for (const request of [get, post]) {
      assertMatch(await ask(front.port, request), /^HTTP\/1\.1 200 /, `${id}`);
    }
  }
  const posts = [...seen].filter(([id]) => Number(id) <= 100);
  assertEquals([posts.length, Math.max(...posts.map(([, times]) => times))], [100, 1]);
  await front.stop();
});

// nodejs/node#12339 and #54366, http-party/node-http-proxy#1677
test("passes on an early refusal of an upload", async (options) => {
  const refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig";
  await using backend = new HandBackend(async (wire) => {
    await wire.head();
    await wire.write(refusal); // and closes, while more is sent, which resets the connection
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  const content = "a".repeat(3_000_000);
  for (let count = 0; count < 30; count++) {
    const path = count % 2 === 0 ? "/v1/a" : "/v2/a";
    const length = count % 3 === 0 ? "Transfer-Encoding: chunked" : "Content-Length: 3000000";
    const body = count % 3 === 0
      ? `${(3_000_000).toString(16)}\r\n${content}\r\n0\r\n\r\n`
      : content;
    const got = await ask(front.port, requestOf("POST", path, `${length}\r\n`) + body);
    assertMatch(got, /^HTTP\/1\.1 413 Too Large\r\n[^]*\r\n\r\nbig$/, `${count} ${path}`);
  }
  assertEquals(front.events("error"), []);
  await front.stop();
});

test("says what is wrong behind it, for HEAD as for GET, and counts that", async (options) => {
  const away = freePort();
  await using silent = new HandBackend((wire) => wire.all());
  await using reset = new HandBackend((wire) => wire.until(" "));
  const cases = [
    [`http://127.0.0.1:${away}`, 502, "gave no valid response"],
    [reset.url, 502, "gave no valid response"],
    [silent.url, 504, "gave no response in time"],
  ] as const;
  for (const [upstream, status, detail] of cases) {
    const database = `${installed().folder}/${crypto.randomUUID()}.sqlite`;
    const settings = { upstream, database: `sqlite:${database}`, timeout: 0.2 };
    await using front = await FrontProcess.start(settings, options);
    const [get = "", head = ""] = await Promise.all(
      ["GET", "HEAD"].map((method) => front.ask(method, "/v1/a")),
    );
    const [fields = "", content = ""] = get.split(/(?<=\r\n\r\n)/);
    const withoutDate = (text: string) => text.replace(/Date: .*\r\n/, "");
    assertEquals(withoutDate(head), withoutDate(fields));
    assertMatch(get, RegExp(`^HTTP/1\\.1 ${status} `));
    assertMatch(fields, /^Deprecation: @1577836800\r\n/m);
    assertEquals(JSON.parse(content).detail, `The server behind this one ${detail}`);
    for (let count = 0; count < 3; count++) await front.ask("POST", "/v2/a");
    const plain = await front.ask("GET", "/v2/a");
    assert(!plain.includes("Deprecation"), plain);
    const lines = front.events("error");
    assertEquals(lines.length, 1, front.log);
    assertEquals(lines[0]?.["upstream"], upstream);
    assertEquals(lines[0]?.["status"], status);
    await front.stop();
    assertEquals(rowsOf(database).map((row) => row.split(" ").slice(0, 5).join(" ")), [
      "/v1 GET deprecated 5xx breaking",
      "/v1 HEAD deprecated 5xx breaking",
    ]);
  }
});

const UPGRADE =
  "GET /v1/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const UPGRADED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

test("keeps nothing of clients that leave a handshake", async (options) => {
  await using backend = new HandBackend((wire) => wire.all());
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  await ask(front.port, "GET / HTTP/1.1\r\n\r\n"); // opens whatever stays open
  const before = front.descriptors;
  const clients = await Promise.all(Array.from({ length: 20 }, () => Wire.to(front.port)));
  for (const [at, client] of clients.entries()) {
    await client.write(UPGRADE + (at % 2 === 0 ? "" : "early"));
  }
  await until("the handshakes", () => backend.open === 20);
  for (const client of clients) client[Symbol.dispose]();
  await until("their end", () => backend.open === 0 && front.descriptors <= before);
  await front.stop();
});

once("front stops though a handshake is not answered yet", async () => {
  await using backend = new HandBackend((wire) => wire.all());
  await using front = await FrontProcess.start({ upstream: backend.url });
  using last = await Wire.to(front.port);
  await last.write(UPGRADE);
  await until("a handshake", () => backend.open === 1);
  const start = performance.now();
  await front.stop();
  assert(performance.now() - start < 15_000);
});

test("survives a handshake behind a request that is not answered yet", async (options) => {
  await using backend = new HandBackend((wire) => wire.all());
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  const waiting = "GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n";
  assertEquals(await ask(front.port, waiting + UPGRADE), "");
  assert(!front.hasEnded, front.log);
  {
    using client = await Wire.to(front.port);
    await client.write(waiting + UPGRADE.replace("websocket", "h2c"));
    await until("the request", () => backend.open > 0);
  }
  await until("its end", () => backend.open === 0);
  await front.stop();
});

test("lets go of all that a client has asked for at once, when it leaves", async (options) => {
  const content = "a".repeat(1_000_000);
  const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`;
  await using backend = new HandBackend(async (wire, count) => {
    await wire.head();
    if (count % 5 !== 1) await wire.write(answer); // the first of five is not answered
    await wire.all();
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  const before = front.descriptors;
  for (
    const request of [
      "GET /v2/a HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /v1/a HTTP/1.1\r\nHost: a\r\n\r\n",
    ]
  ) {
    const clients = await Promise.all(Array.from({ length: 5 }, () => Wire.to(front.port)));
    for (const client of clients) await client.write(request.repeat(5));
    await until("the requests", () => backend.open === 25);
    for (const client of clients) client[Symbol.dispose]();
    await until("their end", () => backend.open === 0 && front.descriptors <= before);
  }
  const start = performance.now();
  await front.stop();
  assert(performance.now() - start < 5_000, "it waits for calls that nobody waits for");
});

test("counts and announces a WebSocket once it begins, and passes on both ways", async (options) => {
  await using backend = new HandBackend(async (wire) => {
    await wire.head();
    await wire.write(UPGRADED);
    await wire.write(`${await wire.until("ping")}, pong`);
    await wire.all();
  });
  const database = `${installed().folder}/${crypto.randomUUID()}.sqlite`;
  const settings = { upstream: backend.url, database: `sqlite:${database}` };
  await using front = await FrontProcess.start(settings, options);
  const before = front.descriptors;
  for (let count = 0; count < 10; count++) {
    using client = await Wire.to(front.port);
    await client.write(UPGRADE);
    assertMatch(
      await client.head() ?? "",
      /^HTTP\/1\.1 101 [^]*\r\nDeprecation: @1577836800\r\n[^]*\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n$/,
    );
    await client.write("ping");
    assertEquals(await client.until("pong"), "ping, pong");
  }
  await until("their end", () => backend.open === 0 && front.descriptors <= before);
  await front.stop();
  assertEquals(rowsOf(database), ["/v1 GET deprecated 1xx breaking (no User-Agent) 10"]);
});

// http-party/node-http-proxy#624 and #877, sagemathinc/http-proxy-3#26
test("passes on the refusal of a WebSocket, and keeps no connection", async (options) => {
  const refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\n";
  await using backend = new HandBackend((wire) => answerAll(wire, refusal));
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  const before = front.descriptors;
  for (let count = 0; count < 20; count++) {
    using client = await Wire.to(front.port);
    await client.write(UPGRADE.replace("v1", count % 2 === 0 ? "v1" : "v2"));
    assertMatch(await client.all(), /^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\n\r\nno!\n$/);
  }
  // One whose content does not end, while its client leaves.
  await using endless = new HandBackend(async (wire) => {
    await wire.write(refusal.replace("4", "40"));
    await wire.all();
  });
  await using other = await FrontProcess.start({ upstream: endless.url }, options);
  const beforeIt = other.descriptors;
  for (let count = 0; count < 20; count++) {
    using client = await Wire.to(other.port);
    await client.write(`${UPGRADE}early`);
    await client.head();
  }
  await until("their end", () => endless.open === 0 && other.descriptors <= beforeIt);
  await other.stop();
  await until("their end", () => backend.open === 0 && front.descriptors <= before);
  await front.stop();
});

test("passes 100 on from behind, and none before a refusal", async (options) => {
  await using backend = new HandBackend(async (wire) => {
    const head = await wire.head() ?? "";
    if (head.includes("/refused")) return await wire.write(OK.replace("200", "401"));
    await wire.write("HTTP/1.1 100 Continue\r\n\r\n");
    await wire.until("content");
    await wire.write(OK);
  });
  const brownouts = ["2020-01-01/9000-01-01"];
  const routes = { "/v1": deprecated({ brownouts, sunsetAt: "9000-01-02" }), "/v0": deprecated() };
  await using front = await FrontProcess.start({ upstream: backend.url, routes }, options);
  const expecting = (path: string) =>
    requestOf("POST", path, "Expect: 100-continue\r\nContent-Length: 7\r\n");
  for (const path of ["/v0", "/v2"]) {
    using client = await Wire.to(front.port);
    await client.write(expecting(path));
    assertEquals(await client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    await client.write("content");
    assertMatch(await client.all(), /^HTTP\/1\.1 200 OK\r\n/);
  }
  for (
    const [path, status] of [["/v1", 503], ["/v0/refused", 401], ["/v2/refused", 401]] as const
  ) {
    assertMatch(await ask(front.port, expecting(path)), RegExp(`^HTTP/1\\.1 ${status} `));
  }
  await front.stop();
});

test("passes on all of what was sent before it was cut off", async (options) => {
  const sent = 8_000_000;
  await using backend = new HandBackend(async (wire) => {
    await wire.head();
    await wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${2 * sent}\r\n\r\n${"a".repeat(sent)}`);
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  using client = await Wire.to(front.port);
  await client.write(requestOf("GET", "/v1/a"));
  await new Promise((resolve) => setTimeout(resolve, 500)); // a client that is slow to read
  const [, content = ""] = (await client.all()).split("\r\n\r\n");
  assertEquals(content.length, sent);
  await front.stop();
});

test("passes content of any length either way, and keeps none of it", async (options) => {
  const size = 200_000_000; // bytes, twice what may be kept
  const block = new Uint8Array(1_000_000);
  const fill = async (wire: Wire) => {
    for (let left = size; left > 0; left -= block.length) await wire.send(block);
  };
  await using backend = new HandBackend(async (wire) => {
    const head = await wire.head() ?? "";
    if (head.startsWith("POST")) {
      if (await wire.skip(size) === size) await wire.write(OK);
    } else {
      await wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      await fill(wire);
    }
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, options);
  const memory = () => {
    const status = Deno.readTextFileSync(`/proc/${front.pid}/status`);
    return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1_000; // the most it ever had, in MB
  };
  await front.ask("HEAD", "/x");
  const before = memory();
  using up = await Wire.to(front.port);
  await up.write(requestOf("POST", "/v1/a", `Content-Length: ${size}\r\n`));
  await within("the upload", fill(up), { timeout: 200_000 });
  assertMatch(await up.all(), /^HTTP\/1\.1 200 /);
  using down = await Wire.to(front.port);
  await down.write(requestOf("GET", "/v1/a"));
  await down.head();
  assertEquals(await within("the download", down.skip(size), { timeout: 200_000 }), size);
  const isFlat = () => assert(memory() - before < 100, `${before} MB before, ${memory()} after`);
  isFlat();

  // Who does not read is not read for.
  using idle = await Wire.to(front.port);
  await idle.write(requestOf("GET", "/v1/a"));
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  isFlat();
});
