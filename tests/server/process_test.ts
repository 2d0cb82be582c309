import { assert, assertEquals, assertMatch } from "@std/assert";
import { delay } from "@std/async/delay";
import { newToken } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { copyProject } from "../support/copy.ts";
import { callsIn, openLedgerIn, openLocal } from "../support/local_storage.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { isFile, LINUX, needing, program } from "../support/permissions.ts";
import { parseResponse, type RawResponse, requestHead, requestRaw } from "../support/raw_http.ts";
import { mustRun, runProgram } from "../support/run.ts";
import { ServerProcess, taskFlags } from "../support/server.ts";
import { until } from "../support/within.ts";
import { checkParity } from "./request_table.ts";

const test = needing("processes");

/** More than sockets hold. */
const CONTENT = new Uint8Array(20_000_000).fill(7);

/** Compares bytes with the content; `assertEquals()` would take seconds. */
function isContent(bytes: Uint8Array): boolean {
  return bytes.length === CONTENT.length && bytes.every((byte) => byte === 7);
}

/** Sends a request, and returns the beginning of the response, of which more may follow. */
async function begin(
  connection: Deno.TcpConn,
  path: string,
  method = "GET",
): Promise<Uint8Array<ArrayBuffer>> {
  await connection.write(requestHead(method, path));
  const first = new Uint8Array(4096);
  return first.subarray(0, await connection.read(first) ?? 0);
}

/** Sends a request, and returns the status of the response, of which more may follow. */
async function statusOn(connection: Deno.TcpConn, path: string, method = "GET"): Promise<number> {
  const beginning = new TextDecoder().decode(await begin(connection, path, method));
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(beginning)?.[1]);
}

/** Reads the rest of a response until the server closes the connection. */
async function finish(
  connection: Deno.TcpConn,
  first: Uint8Array<ArrayBuffer>,
): Promise<RawResponse> {
  const rest = await new Response(connection.readable).bytes();
  return parseResponse(await new Blob([first, rest]).bytes());
}

/** Requests content on a connection of its own, and never reads it all. */
async function stall(port: number, path: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await begin(connection, path);
  return connection;
}

/** How the sessions in a folder's ledger have ended. */
async function endsIn(folder: string) {
  await using opened = await openLedgerIn(folder);
  return (await opened.ledger.sessions()).map(({ ended }) => ended);
}

/** Whether a promise is still pending after a moment. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  promise.finally(() => isOver = true).catch(() => {});
  await delay(200);
  return !isOver;
}

test("a server process finishes the requests in flight, then stops", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), CONTENT);
  const server = await ServerProcess.start({}, subject.folder);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  using idle = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const first = await begin(connection, `/media/${token}`);
  const stopped = server.stop("SIGTERM");
  assert(isContent((await finish(connection, first)).content));

  const { code, log } = await stopped;
  assertEquals(code, 0);
  assertEquals(log.map(({ event }) => event), ["start", "stop"]);
  assertEquals(await idle.read(new Uint8Array(1)), null);
});

test("a server process drops unfinished requests after ten seconds, with every call on record", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(50_000_000));
  const server = await ServerProcess.start({}, subject.folder);
  Deno.kill(server.pid, "SIGHUP"); // changes nothing without a terminal; Deno would end it soon
  using _gone = await stall(server.port, `/media/${token}`);
  _gone.close(); // the client gives up
  using _one = await stall(server.port, `/audio/${token}`);
  const stopped = server.stop("SIGTERM");
  assert(await isPending(stopped), "the requests got no time to finish");
  const { code, log } = await stopped;
  assertEquals([code, log.map(({ event }) => event)], [0, ["start", "stop"]]);
  assertEquals(await callsIn(subject.folder), 1);
});

test("deno's watcher, which restarts a server in its own process, leaves no server without an end", async () => {
  await using subject = await openLocal();
  const watched = `${subject.folder}/watched`;
  await Deno.writeTextFile(watched, "");
  const flags = [...taskFlags(fromRoot("main.ts")), `--watch=${watched}`];
  const server = await ServerProcess.start({}, subject.folder, { flags });
  await Deno.writeTextFile(watched, "changed");
  await until("a restart", async () => (await endsIn(subject.folder)).length === 2);
  assertEquals(await endsIn(subject.folder), ["stopped", undefined]);
  await server.stop("SIGKILL");
});

test("a second signal after a second ends a server process at once", async () => {
  for (const [signal, status] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(50_000_000));
    const server = await ServerProcess.start({}, subject.folder);
    using _stalled = await stall(server.port, `/media/${token}`);
    const { pid } = server;
    for (let again = 0; again < 3; again++) Deno.kill(pid, signal); // at once: counts as one
    await delay(100); // much less than a second, even on a busy machine
    Deno.kill(pid, "SIGINT");
    const stopped = server.stop(signal);
    assert(await isPending(stopped), "signals within a second ended it");
    while (await isPending(stopped)) Deno.kill(pid, signal);
    const { code, log } = await stopped;
    assertEquals([code, log.map(({ event }) => event)], [status, ["start"]]);
  }
});

test("a signal while a server registers ends it in order", async () => {
  const script = `const { runServer } = await import("${fromRoot("lib/server/process.ts")}");
    const place = { host: "127.0.0.1", port: 0, onListen: () => console.log("start") };
    const recorder = { session: "a", unrecorded: () => 0, async start() {
      Deno.kill(Deno.pid, "SIGTERM");
      await new Promise((resolve) => setTimeout(resolve, 500));
      console.log("registered");
    } };
    await runServer(() => Promise.resolve({ ...place, recorder,
      log: ({ event }) => console.log(event), close: async () => console.log("ended"),
      listen: (options) => Deno.serve(options, () => new Response()) }));`;
  const said = await mustRun(Deno.execPath(), ["eval", script]);
  assertEquals(said, "registered\nstart\nended\nstop\n");
});

// Elsewhere, script(1) has different options.
for (
  const how of ["Ctrl-C", "closing the terminal", "closing the terminal when the log is in a file"]
) {
  needing("processes", LINUX, program("script"))(
    `${how} stops the README's first command in order, with every call counted`,
    () =>
      inFolder(async (folder) => {
        copyProject(folder);
        const isKey = how === "Ctrl-C";
        const log = `${folder}/log`;
        const toFile = how.endsWith("file") ? ` >${log} 2>&1` : "";
        const child = new Deno.Command("script", {
          args: [
            ...["--quiet", "--return"],
            // Replaces the shell, which would otherwise be interrupted too, and exit with its own 130.
            ...["--command", `exec "${Deno.execPath()}" task start${toFile}`, "/dev/null"],
          ],
          cwd: folder,
          env: { HOST: "127.0.0.1", PORT: "0" },
          stdin: "piped",
          stdout: "piped",
        }).spawn();
        let said = "";
        const read = (async () => {
          for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) said += text;
        })();
        const output = () => toFile === "" ? said : Deno.readTextFileSync(log);
        const portIn = () => Number(/"event":"start".*?"port":(\d+)/.exec(output())?.[1] ?? 0);
        await until("the start", () => (toFile === "" || isFile(log)) && portIn() > 0);
        for (let sent = 0; sent < 7; sent++) {
          await requestRaw(portIn(), "HEAD", `/audio/${newToken()}`);
        }
        const keyboard = child.stdin.getWriter();
        if (isKey) await keyboard.write(Uint8Array.of(3));
        else child.kill("SIGKILL"); // the terminal's other end
        const { code } = await child.status;
        await read;
        await keyboard.close().catch(() => {}); // the terminal is closed
        if (isKey) {
          assertEquals(code, 0, output());
          assertMatch(output(), /"event":"stop"/);
        }
        assertMatch(output(), /"event":"warning","message":"DEPRECATED_AT is not set/);
        assertMatch(output(), /curl -I .*\/audio\//); // the samples
        const data = `${folder}/data`;
        await until("the stop", async () => (await endsIn(data))[0] === "stopped");
        assertEquals(await callsIn(data), 7);
      }),
  );
}

needing("processes", program("bash"))(
  "a server process out of file descriptors answers 503 to a GET that must open its content",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(20_000_000));
    const server = await ServerProcess.start({}, subject.folder, { limits: "-n 64" });
    const open = () => Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const connections: Deno.TcpConn[] = [];
    for (let opened = 0; opened < 8; opened++) connections.push(await open());
    const idle: Deno.TcpConn[] = [];
    for (let opened = 0; opened < 64; opened++) {
      await open().then((connection) => idle.push(connection)).catch(() => {});
    }
    const [one, other, ...rest] = connections as [Deno.TcpConn, Deno.TcpConn, ...Deno.TcpConn[]];
    const statuses: number[] = [];
    for (const connection of rest) { // each 200 takes a descriptor, and keeps it
      statuses.push(await statusOn(connection, `/media/${token}`));
    }
    assertEquals(statuses.at(-1), 503);
    // Nothing has to be loaded for these: with no descriptor free, that would end the process.
    assertEquals(await statusOn(one, "/deprecation", "HEAD"), 200);
    assertEquals(await statusOn(other, "/openapi.json", "HEAD"), 200);
    for (const connection of [...connections, ...idle]) connection.close();
    const { code, log } = await server.stop();
    assertEquals(code, 0);
    assert(log.some(({ status, cause }) => status === 503 && /Too many/.test(String(cause))));
  },
);

needing("processes", program("bash"))(
  "a server process out of file descriptors keeps serving, and accepts again once some are free",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), CONTENT);
    const server = await ServerProcess.start({}, subject.folder, { limits: "-n 64" });
    const { port } = server;
    using first = await Deno.connect({ hostname: "127.0.0.1", port });
    // Needs no descriptor: the listener may just have taken the last one, to try again.
    assertEquals(await statusOn(first, "/deprecation", "HEAD"), 200);

    for (let outage = 0; outage < 2; outage++) {
      const idle: Deno.TcpConn[] = [];
      const end = performance.now() + 2_500; // more than one attempt to listen again
      while (performance.now() < end) {
        try {
          if (idle.length < 200) idle.push(await Deno.connect({ hostname: "127.0.0.1", port }));
        } catch (error) {
          const { ConnectionRefused, ConnectionReset } = Deno.errors;
          if (!(error instanceof ConnectionRefused || error instanceof ConnectionReset)) {
            throw error;
          }
        }
        await delay(5);
      }
      assert(idle.length > 30, `${idle.length} connections`);
      assertEquals(await statusOn(first, "/deprecation", "HEAD"), 200);
      for (const connection of idle) connection.close();
      const isServed = () =>
        requestRaw(port, "HEAD", "/healthz").then(({ status }) => status === 200);
      await until("the listener", () => isServed().catch(() => false));
    }
    // Older connections get time to finish, too.
    const start = await begin(first, `/media/${token}`);
    const stopped = server.stop();
    assert(isContent((await finish(first, start)).content));
    const { code, log } = await stopped;
    assertEquals([code, log.map(({ event }) => event)], [0, ["start", "error", "stop"]]);
    assertMatch(String(log[1]?.["cause"]), /Too many open files/);
  },
);

needing("processes", program("bash"))(
  "a stack can be read without a free descriptor, where Deno's first in a process panics",
  async () => {
    const listener = new URL("../../lib/server/listener.ts", import.meta.url).href;
    const script = `const { Listener } = await import("${listener}");
      const options = { host: "127.0.0.1", port: 0, onListen() {},
        listen: (options) => Deno.serve(options, () => new Response()) };
      new Listener(options);
      try {
        for (let opened = 0; opened < 100; opened++) Deno.openSync("/dev/null");
      } catch (error) {
        console.log(error.message);
      }
      try {
        new Listener(options);
      } catch (error) { // parsing the stack measures the thread's at an "if"
        if (error instanceof Error) console.log(error.stack);
      }
      Deno.exit();`;
    const words = ["-c", 'ulimit -n 64; exec "$@"', "bash", Deno.execPath(), "eval", script];
    const { stdout, stderr } = await runProgram("bash", words);
    assertMatch(stdout, /Too many open files[^]*Too many open files[^]*listener\.ts/, stderr);
  },
);

test("a server process never compresses, even if Deno is told to: GET would differ from HEAD", async () => {
  await using server = await ServerProcess.start({ DENO_SERVE_AUTOMATIC_COMPRESSION: "1" });
  const fields = { "Accept-Encoding": "gzip, br" };
  const get = await requestRaw(server.port, "GET", "/deprecation", fields);
  const head = await requestRaw(server.port, "HEAD", "/deprecation", fields);
  checkParity("/deprecation", head, get);
  assert(!get.fields.some(([name]) => name === "content-encoding"));
});

test("a server process logs a change of phase although nobody calls", async () => {
  const sunset = Math.ceil(Date.now() / 1_000) * 1_000 + 6_000; // after the start, even of a busy machine
  const SUNSET_AT = new Date(sunset).toISOString();
  await using server = await ServerProcess.start({ SUNSET_AT });
  await until("the last change", () => server.hasLogged('"/video/:token","phase"'));
  const { log } = await server.stop("SIGKILL"); // no look at the stop
  const changes = log.filter(({ event }) => event === "phase")
    .map(({ route, phase }) => [route, phase]);
  assertEquals(changes, [["/audio/:token", "removed"], ["/video/:token", "removed"]]);
});
