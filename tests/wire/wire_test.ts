import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { sqliteAt } from "../../lib/database/place.ts";
import { openEngine } from "../../lib/storage/engines/sqlite.ts";
import { newToken } from "../../lib/storage/token.ts";
import { checkParity, checkProblem } from "../server/request_table.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { field, requestHead, requestRaw } from "../support/raw_http.ts";
import { ServerProcess, storageIn } from "../support/server.ts";

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
  ];
  for (const [environment, reason] of refusals) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--quiet", "--no-prompt", "--allow-all", fromRoot("main.ts")],
      env: { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", NO_COLOR: "1", ...environment },
      signal: AbortSignal.timeout(60_000), // if it starts after all
    }).output();
    const said = new TextDecoder().decode(stderr);
    assert(said.startsWith("media-head cannot start: "), said);
    assertMatch(said, reason);
    assertEquals(code, 1);
  }
  const { ledger, close } = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
  const sessions = await ledger.sessions();
  await close();
  assert(sessions.length > 0);
  assert(sessions.every(({ ended }) => ended === "stopped"), "the gate waits for none of them");
});

test("a server process does not start while it cannot register in the ledger", async () => {
  await using subject = await openLocal();
  using holder = new DatabaseSync(`${subject.folder}/catalogue.sqlite-ledger`);
  holder.exec("BEGIN IMMEDIATE");
  const { message } = await assertRejects(() => ServerProcess.start({}, subject.folder), Error);
  assertMatch(
    message,
    /cannot start: sqlite: the ledger ".+" \(DATABASE_URL\) cannot be written \(database is locked\)/,
  );
});

test("a server process is healthy only while its content folder is in place", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata(), CONTENT);
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
  await Deno.writeTextFile(`${folder}/files/lock`, "");
  assertEquals(await statuses(), [503, 503, 404, 404, 503, 503]);
  await Deno.remove(`${folder}/files`, { recursive: true });
  await Deno.rename(`${folder}/moved`, `${folder}/files`);
  assertEquals(await statuses(), [200, 200, 404, 404, 200, 200]);
});
