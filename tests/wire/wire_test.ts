import { assert, assertEquals, assertMatch } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { StorageError } from "../../lib/storage/storage.ts";
import { createHandler } from "../../main.ts";
import { checkParity, CONFIG } from "../server/request_table.ts";
import { openLocal } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { failing } from "../support/one_item.ts";
import { needing } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { type LogLine, ServerProcess, storageIn } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";

const test = needing("processes");

test("a server process answers requests that no URL can express", async () => {
  await using server = await ServerProcess.start();
  const requests: [method: string, target: string, fields: Record<string, string>, number][] = [
    ["OPTIONS", "*", {}, 404],
    ["GET", "//", {}, 404],
    ["GET", "/media/%", {}, 400],
    ["POST", "/healthz", { "Content-Length": "0" }, 405],
    ["TRACE", "/healthz", {}, 405],
    ["BREW", "/healthz", {}, 405],
  ];
  for (const [method, target, fields, status] of requests) {
    const seen = await requestRaw(server.port, method, target, fields);
    assertEquals([method, target, seen.status], [method, target, status]);
    assertEquals(field(seen, "content-length"), String(seen.content.length));
  }
  const preflight = await requestRaw(server.port, "OPTIONS", `/media/${newToken()}`);
  assertEquals([preflight.status, preflight.content.length], [204, 0]);
  assertEquals(field(preflight, "content-length"), undefined);
});

test("a server process answers 400 to an invalid Host, even for prepared responses", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  await using server = await ServerProcess.start({}, subject.folder);
  const path = `/audio/${token}`;
  const send = (method: string, target: string, host: string) =>
    requestRaw(server.port, method, target, { Host: host });
  for (const _ of ["first", "prepared"]) {
    for (const host of ["a", "a:80", "[::1]:8000", ""]) {
      assertEquals((await send("HEAD", path, host)).status, 200, host);
    }
    for (
      const [target, host] of [["/healthz", `a${path}?`], [`/${token}`, "a/audio"], [
        path,
        "a:99999",
      ]]
    ) {
      const get = await send("GET", target as string, host as string);
      const problem = JSON.parse(new TextDecoder().decode(get.content));
      assertEquals([get.status, problem.status], [400, 400], host);
      assertEquals(field(get, "deprecation"), undefined);
      checkParity(`Host: ${host}`, await send("HEAD", target as string, host as string), get);
    }
  }
});

needing("network")("a HEAD agrees with its GET on the wire when the server fails", async () => {
  const rows: [error: Error, status: number][] = [
    [new Error("bug"), 500],
    [new StorageError("sqlite", "down"), 503],
  ];
  for (const [error, status] of rows) {
    const handle = createHandler({
      storage: failing(error),
      config: CONFIG,
      now: Date.now,
      log() {},
    });
    const options = { hostname: "127.0.0.1", port: 0, automaticCompression: false, onListen() {} };
    const server = Deno.serve(options, handle);
    for (const target of [`/audio/${newToken()}`, `/media/${newToken()}`, "/healthz"]) {
      const [get, head] = await Promise.all(
        ["GET", "HEAD"].map((method) => requestRaw(server.addr.port, method, target)),
      );
      assertEquals([get?.status, head?.status], [status, status]);
      assertEquals(head?.content.length, 0);
      const fields = (seen = get) => seen?.fields.filter(([name]) => name !== "date").toSorted();
      assertEquals(fields(head), fields(get));
    }
    await server.shutdown();
  }
});

test("a server process keeps a connection in sync over GET, HEAD, 304 and 416", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  await using server = await ServerProcess.start({}, subject.folder);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const request = (method: string, fields = "") =>
    `${method} /media/${token} HTTP/1.1\r\nHost: test\r\n${fields}\r\n`;
  const pipeline = request("HEAD") + request("GET", "If-None-Match: *\r\n") +
    request("HEAD", 'If-Match: "x"\r\n') + request("GET", "Range: bytes=9-\r\n") +
    request("HEAD", "Range: bytes=9-\r\n") + request("GET", "Connection: close\r\n");
  await connection.write(new TextEncoder().encode(pipeline));
  const text = await new Response(connection.readable).text();
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
  assertEquals(statuses, ["200", "304", "412", "416", "200", "200"]);
  assert(text.endsWith("\r\n\r\ncontent"));
});

test("a server process logs faults without tokens, on one line each", async () => {
  await using subject = await openLocal();
  const item = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  await subject.damage(item, undefined);
  const server = await ServerProcess.start({}, subject.folder);
  await requestRaw(server.port, "HEAD", `/audio/${item.token}`);
  await requestRaw(server.port, "GET", "/media/x");
  const { log } = await server.stop("SIGINT");
  assertEquals(log.map(({ event }) => event), ["start", "error", "stop"]);
  const fault = log[1] as LogLine;
  assertEquals([fault["status"], fault["method"]], [503, "HEAD"]);
  assertEquals(fault["route"], "/audio/:token");
  assert(String(fault["cause"]).includes(`content ${item.digest} is missing`));
  assert(!JSON.stringify(log).includes(item.token));
});

test("an unpublished item answers 410 within CACHE_TTL", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  await using server = await ServerProcess.start({ CACHE_TTL: "1" }, subject.folder);
  const status = async () => (await requestRaw(server.port, "HEAD", `/media/${token}`)).status;
  assertEquals(await status(), 200);
  const unpublishedAt = performance.now();
  await subject.unpublish(token, 5000);
  while (await status() === 200) assert(performance.now() - unpublishedAt < 10_000);
  assertEquals(await status(), 410);
});

test("a server process refuses to start with a reason", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const folder = await Deno.makeTempDir();
  const port = String(taken.addr.port);
  const refusals: [environment: Record<string, string>, reason: RegExp][] = [
    [
      { PORT: port },
      new RegExp(`^media-head cannot start: Cannot listen on 127.0.0.1:${port}: `),
    ],
    [{ REUSE_PORT: "true" }, /^media-head cannot start: REUSE_PORT=true needs .*--unstable-net/],
    [{ PORT: "http" }, /^media-head cannot start: PORT: expected .* got "http"$/],
    [{ CACHE_TTL: "-1", PORT: "70000" }, /PORT: .*\nCACHE_TTL: /],
    [
      { DATABASE_URL: `sqlite:${folder}` },
      /^media-head cannot start: sqlite: the catalogue ".+" \(DATABASE_URL\) cannot be opened \(.+\)$/,
    ],
    [
      { CONTENT: `${folder}/catalogue.sqlite` },
      /^media-head cannot start: files: cannot read ".*" \(CONTENT\) \(.+\)$/,
    ],
  ];
  for (const [environment, reason] of refusals) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-all", fromRoot("main.ts")],
      env: { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", NO_COLOR: "1", ...environment },
    }).output();
    const lines = new TextDecoder().decode(stderr).trim().split("\n")
      .filter((line) => !line.startsWith("warning:"));
    assertMatch(lines.join("\n"), reason);
    assertEquals(code, 1);
  }
  await Deno.remove(folder, { recursive: true });
});

test("a server process is healthy only while its content folder is in place", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  const start = async (files: string) => {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-all", fromRoot("main.ts")],
      env: { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", CONTENT: files },
    }).output();
    return [code, new TextDecoder().decode(stderr)] as const;
  };
  await using another = await openLocal();
  const rows: [files: string, fault: string][] = [
    [`${folder}/mistyped`, "is not the folder with the content of this catalogue"],
    [folder, "is not the folder with the content of this catalogue"],
    [`${another.folder}/files`, "is not the folder with the content of this catalogue"],
    [`${folder}/catalogue.sqlite`, "cannot read"],
  ];
  for (const [files, fault] of rows) {
    const [code, stderr] = await start(files);
    assertEquals(code, 1);
    assert(stderr.startsWith("media-head cannot start: files: "), stderr);
    assert(stderr.includes(`"${files}" (CONTENT)`) && stderr.includes(fault), stderr);
  }

  await using server = await ServerProcess.start({}, folder);
  const statuses = async () => {
    const targets = ["/healthz", `/media/${newToken()}`, `/media/${token}`];
    const answers = await Promise.all(
      targets.flatMap((target) =>
        ["HEAD", "GET"].map((method) => requestRaw(server.port, method, target))
      ),
    );
    return answers.map(({ status }) => status);
  };
  await Deno.rename(`${folder}/files`, `${folder}/moved`);
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.mkdir(`${folder}/files`); // exists, but is another folder
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.writeTextFile(`${folder}/files/lock`, "");
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.remove(`${folder}/files`, { recursive: true });
  await Deno.rename(`${folder}/moved`, `${folder}/files`);
  assertEquals(await statuses(), [200, 200, 404, 404, 200, 200]);
});

test("a prepared response is sent completely to many clients at once, repeatedly", async () => {
  await using subject = await openLocal();
  const { token, digest } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await using server = await ServerProcess.start({ CACHE_TTL: "60" }, subject.folder);
  const heads = (count: number, path: string, fields = {}) =>
    Promise.all(
      Array.from({ length: count }, () => requestRaw(server.port, "HEAD", path, fields)),
    );
  const rows: [path: string, fields: Record<string, string>, status: number][] = [
    [`/audio/${token}`, {}, 200],
    [`/audio/${token}`, { "If-None-Match": `"${digest}"` }, 304],
    [`/media/${newToken()}`, {}, 404],
    ["/video/x", {}, 400],
  ];
  for (const [path, fields, status] of rows) {
    const get = await requestRaw(server.port, "GET", path, fields);
    assertEquals(get.status, status);
    for (let round = 0; round < 3; round++) {
      for (const head of await heads(40, path, fields)) checkParity(path, head, get);
    }
  }
});

test("a running server goes through every phase to the second, without a restart", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  const start = Math.ceil(Date.now() / 1000) * 1000 + 3000;
  const [brownout, after, sunset] = [start, start + 2000, start + 4000];
  const instant = (time: number) => new Date(time).toISOString();
  await using server = await ServerProcess.start({
    DEPRECATED_AT: "2026-01-01",
    SUNSET_AT: instant(sunset),
    BROWNOUTS: `${instant(brownout)}/PT2S`,
    AFTER_SUNSET: "redirect",
  }, subject.folder);

  const phases = [
    { until: brownout, status: 200 },
    { until: after, status: 410 },
    { until: sunset, status: 200 },
    { until: Infinity, status: 308 },
  ];
  const seen = new Set<unknown>();
  for (let isOver = false; !isOver;) {
    for (const method of ["HEAD", "GET"]) {
      const sent = Date.now();
      const answer = await requestRaw(server.port, method, `/audio/${token}`);
      const received = Date.now();
      const possible = phases.filter(({ until }, index) =>
        sent < until && received >= (phases[index - 1]?.until ?? 0)
      );
      const phase = possible.find(({ status }) => status === answer.status);
      assert(
        phase !== undefined,
        `${answer.status} between ${instant(sent)} and ${instant(received)}`,
      );
      seen.add(phase);
      const maxAge = Number(/max-age=(\d+)/.exec(field(answer, "cache-control") ?? "")?.[1] ?? 0);
      assert(sent + maxAge * 1000 <= phase.until, `max-age=${maxAge} reaches past the phase`);
      isOver = sent > sunset + 500;
    }
  }
  assertEquals(seen.size, phases.length);
});

test("a server process refuses HEAD and GET alike in a brownout and after the sunset", async () => {
  const token = newToken();
  const past = { DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" };
  const brownout = {
    DEPRECATED_AT: "2020-01-01",
    SUNSET_AT: "2999-01-01",
    BROWNOUTS: "2020-01-01/2998-01-01",
  };
  const rows: [environment: Record<string, string>, status: number][] = [
    [brownout, 410],
    [past, 410],
    [{ ...past, AFTER_SUNSET: "redirect" }, 308],
  ];
  for (const [environment, status] of rows) {
    await using server = await ServerProcess.start(environment);
    for (const path of [`/audio/${token}`, `/video/${token}`, "/audio/malformed"]) {
      const fields = { "If-None-Match": "*", Range: "bytes=0-1" };
      const get = await requestRaw(server.port, "GET", path, fields);
      for (const _ of ["first", "prepared"]) {
        checkParity(path, await requestRaw(server.port, "HEAD", path), get);
      }
      checkParity(path, await requestRaw(server.port, "HEAD", path, fields), get);
      const isRedirect = status === 308 && path !== "/audio/malformed";
      assertEquals(get.status, isRedirect ? 308 : 410);
      assertEquals(field(get, "location"), isRedirect ? `/media/${token}` : undefined);
      const preflight = await requestRaw(server.port, "OPTIONS", path);
      assertEquals([preflight.status, field(preflight, "deprecation")], [204, "@1577836800"]);
    }
  }
});
