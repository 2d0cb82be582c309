import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../lib/storage/token.ts";
import { checkParity, checkProblem } from "../server/request_table.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { callsIn, openLedgerIn, openLocal } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { field, requestHead, requestRaw } from "../support/raw_http.ts";
import { runProgram } from "../support/run.ts";
import { ServerProcess, storageIn } from "../support/server.ts";
import { until } from "../support/within.ts";

const test = needing("processes");

const CONTENT = new TextEncoder().encode("content");

test("a server process answers requests that no URL can express", async () => {
  await using server = await ServerProcess.start();
  const requests: [method: string, target: string, fields: Record<string, string>, number][] = [
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
  for (const target of ["*", "/nowhere", `/media/${newToken()}`]) {
    const preflight = await requestRaw(server.port, "OPTIONS", target);
    assertEquals([preflight.status, preflight.content.length], [204, 0]);
    assertEquals(field(preflight, "content-length"), undefined);
  }
});

test("a server process answers 400 to an invalid Host, even for prepared responses", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), CONTENT);
  await using server = await ServerProcess.start({}, subject.folder);
  const path = `/audio/${token}`;
  const send = (method: string, target: string, host: string) =>
    requestRaw(server.port, method, target, { Host: host });
  const invalid: [target: string, host: string][] = [
    ["/healthz", `a${path}?`],
    [`/${token}`, "a/audio"],
    [path, "a:99999"],
  ];
  for (const _ of ["first", "second", "prepared"]) {
    for (const host of ["a", "a:80", "[::1]:8000", ""]) {
      assertEquals((await send("HEAD", path, host)).status, 200, host);
    }
    for (const [target, host] of invalid) {
      const get = await send("GET", target, host);
      assertEquals(get.status, 400, host);
      checkProblem(host, get, "bad-host");
      assertEquals(field(get, "deprecation"), undefined);
      checkParity(host, await send("HEAD", target, host), get);
    }
  }
});

test("a server process keeps a connection in sync over GET, HEAD, 304 and 416", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), CONTENT);
  await using server = await ServerProcess.start({}, subject.folder);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const requests: [method: string, fields: Record<string, string>, status: number][] = [
    ["HEAD", {}, 200],
    ["GET", { "If-None-Match": "*" }, 304],
    ["HEAD", { "If-Match": '"x"' }, 412],
    ["GET", { Range: "bytes=9-" }, 416],
    ["HEAD", { Range: "bytes=9-" }, 200],
    ["GET", { Connection: "close" }, 200],
  ];
  for (const [method, fields] of requests) { // without waiting for a response
    await connection.write(requestHead(method, `/media/${token}`, fields));
  }
  const text = await new Response(connection.readable).text();
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  assertEquals(statuses, requests.map(([, , status]) => status));
  assert(text.endsWith("\r\n\r\ncontent"));
});

test("a server process refuses to start with a reason", async () => {
  await using subject = await openLocal();
  await using another = await openLocal();
  const { folder } = subject;
  await subject.publish(newMetadata(), CONTENT);
  await Deno.mkdir(`${folder}/empty`);
  await Deno.mkdir(`${folder}/other.sqlite-ledger`);
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const notTheFolder = /: files: ".+" \(CONTENT\) is not /;
  const refusals: [environment: Record<string, string>, reason: RegExp][] = [
    [
      { PORT: String(taken.addr.port) },
      /: Cannot listen on 127\.0\.0\.1:\d+: Address already in use/,
    ],
    [{ REUSE_PORT: "true" }, /: REUSE_PORT=true /],
    [{ USAGE_DAYS: "0", PORT: "70000" }, /: PORT: .*, got "70000"\nUSAGE_DAYS: .*, got "0"\n$/],
    [
      { DATABASE_URL: `sqlite:${folder}/empty` },
      /: sqlite: the catalogue ".+" \(DATABASE_URL\) cannot be opened \(.+\)\n$/,
    ],
    [
      { CONTENT: `${folder}/catalogue.sqlite` },
      /: files: cannot read ".+" \(CONTENT\) \(.+\)\n$/,
    ],
    [{ CONTENT: `${folder}/mistyped` }, notTheFolder],
    [{ CONTENT: `${folder}/empty` }, notTheFolder],
    [{ CONTENT: `${another.folder}/files` }, notTheFolder],
    [
      { DATABASE_URL: `sqlite:${folder}/other.sqlite`, CONTENT: "none" },
      /: sqlite: the ledger ".+other\.sqlite-ledger" \(DATABASE_URL\) cannot be opened \(.+\)\n$/,
    ],
  ];
  for (const [environment, reason] of refusals) {
    const options = {
      env: { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", NO_COLOR: "1", ...environment },
      signal: AbortSignal.timeout(60_000), // if it starts after all
    };
    const words = ["run", "--quiet", "--no-prompt", "--allow-all", fromRoot("main.ts")];
    const { code, stderr } = await runProgram(Deno.execPath(), words, options);
    const said = stderr.replace(/^(?:\{.*\}\n)+/, ""); // the log
    assert(said.startsWith("media-head cannot start: "), said);
    assertMatch(said, reason);
    assertEquals(code, 1);
  }
  await using opened = await openLedgerIn(folder);
  const ends = (await opened.ledger.sessions()).map(({ ended }) => ended);
  assertEquals(ends, ["stopped"], "no verdict names the one that could not listen");
});

test("a server process starts while its ledger is locked, says so, and records its calls later", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
  using holder = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`);
  holder.exec("BEGIN IMMEDIATE");
  const servers = await Promise.all([1, 2].map(() => ServerProcess.start({}, folder)));
  const [server, other] = servers as [ServerProcess, ServerProcess];
  for (const method of ["HEAD", "GET"]) {
    for (const { port } of servers) {
      assertEquals((await requestRaw(port, method, `/audio/${token}`)).status, 200);
    }
  }
  const health = async () => {
    const { status, content } = await requestRaw(server.port, "GET", "/healthz");
    return [status, new TextDecoder().decode(content)];
  };
  const fault = "no record of calls: the process is not registered yet (see the log)";
  assertEquals(await health(), [200, `ok, but ${fault}\n`]);
  const last = (await other.stop()).log.at(-1);
  assertEquals([last?.event, last?.["lost"]], ["stop", 2]);
  holder.exec("ROLLBACK");
  await until("its registration", async () => (await health())[1] === "ok\n");
  const { code, log } = await server.stop();
  const events = log.map(({ event }) => event).filter((event) => event !== "error");
  assertEquals([code, ...events], [0, "start", "session", "stop"]);
  assertMatch(String(log[0]?.["cause"]), /^StorageError: .*ledger/);
  assertEquals(await callsIn(folder), 2);
});

test("a server process is healthy only while its content folder is in place", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
  await using server = await ServerProcess.start({}, folder);
  const statuses = async () => {
    const all: number[] = [];
    for (const target of ["/healthz", `/media/${newToken()}`, `/media/${token}`]) {
      for (const method of ["HEAD", "GET"]) {
        all.push((await requestRaw(server.port, method, target)).status);
      }
    }
    return all;
  };
  await Deno.rename(`${folder}/files`, `${folder}/moved`);
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.mkdir(`${folder}/files`); // exists, but is another folder
  await Deno.writeTextFile(`${folder}/files/lock`, "");
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.remove(`${folder}/files`, { recursive: true });
  await Deno.rename(`${folder}/moved`, `${folder}/files`);
  assertEquals(await statuses(), [200, 200, 404, 404, 200, 200]);
});
