/**
 * The files in `lib/server/` with which others run the server: the systemd unit, the container file
 * and nginx's configuration.
 */

import { assert, assertEquals } from "@std/assert";
import { openLocal } from "../support/local_storage.ts";
import { copy } from "../support/copy.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { ServerProcess } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { checkParity } from "./request_table.ts";

const read = (name: string) => Deno.readTextFileSync(fromRoot(name));
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Starts a server until it comes up, as systemd does by its unit: five times in ten seconds. */
async function supervise(environment: Record<string, string>, folder: string) {
  const unit = read("lib/server/media-head@.service");
  const [, command = ""] = /^ExecStart=\S+\/deno run (.*) main\.ts$/m.exec(unit) ?? [];
  const allowed = command.replaceAll("%S", folder).replace(/--allow-net=\S+/, "--allow-net");
  const flags = [...allowed.split(" "), `--deny-read=${fromRoot(".env")}`];
  assert(/^Restart=on-failure$/m.test(unit));
  const delay = Number(/^RestartSec=(\d+)$/m.exec(unit)?.[1] ?? 0.1) * 1_000;
  const starts: number[] = [];
  for (;;) {
    starts.push(performance.now());
    const isFailed = starts.length > 5 && Number(starts.at(-1)) - Number(starts.at(-6)) < 10_000;
    assert(!isFailed, `systemd gives up after ${starts.length - 1} starts`);
    try {
      return { starts, server: await ServerProcess.start(environment, folder, { flags }) };
    } catch {
      await pause(delay);
    }
  }
}

needing(...POSTGRES, ...S3_STORE)(
  "a server of the systemd unit comes up once its database and its store do, ten seconds late",
  () =>
    inFolder(async (folder) => {
      await using postgres = await PostgresServer.start();
      await using store = await S3Store.start();
      const DATABASE_URL = postgres.urlOf(await postgres.createDatabase());
      await Promise.all([postgres.stop(), store.stop()]);
      const up = pause(10_000).then(() => Promise.all([postgres.launch(), store.launch()]));
      const environment = { DATABASE_URL, ...store.environment("late") };
      const { starts, server } = await supervise(environment, folder);
      await using running = server;
      await up;
      assert(starts.length > 2, `${starts.length} starts`);
      assertEquals((await requestRaw(running.port, "HEAD", "/healthz")).status, 200);
    }),
);

needing("processes", program("nginx"))("nginx passes on what the server says", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(100_000));
  await using server = await ServerProcess.start({}, subject.folder);
  const configuration = read("lib/server/nginx.conf").replaceAll(":8000", `:${server.port}`);
  await using front = await Daemon.start(
    "nginx",
    ({ port, folder }) =>
      nginx(folder, configuration.replace("127.0.0.1:8090", `127.0.0.1:${port}`)),
  );
  for (const [path, status] of [[token, 200], ["x", 400]] as const) {
    const ask = (method: string) => requestRaw(front.port, method, `/audio/${path}`);
    const get = await ask("GET");
    assertEquals(get.status, status);
    checkParity(path, await ask("HEAD"), get);
  }
});

const test = needing("processes");

test("the container holds what a server runs from, and no secret or data", () =>
  inFolder(async (folder) => {
    const file = read("lib/server/Dockerfile");
    const copies = file.matchAll(/^COPY (.*) \S+$/gm);
    const copied = [...copies].flatMap(([, names = ""]) => names.split(" "));
    const [, ...patterns] = read(".dockerignore").trimEnd().split("\n");
    assertEquals(patterns, ["*", ...copied.map((name) => `!${name}`)]);
    for (const name of copied) copy(fromRoot(name), `${folder}/${name}`);
    const [deno, run, ...flags] = JSON.parse(/^CMD (.*)$/m.exec(file)?.[1] ?? "");
    assertEquals([deno, run, flags.pop()], ["deno", "run", "main.ts"]);
    const own = (flag: string) =>
      flag.replace("=0.0.0.0:8000", "=127.0.0.1:0").replace(/(?<=[=,])\/data/, folder);
    const options = { main: `${folder}/main.ts`, flags: flags.map(own) };
    await using server = await ServerProcess.start({}, folder, options);
    assertEquals((await requestRaw(server.port, "HEAD", "/healthz")).status, 200);
  }));
