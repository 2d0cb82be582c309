/**
 * The files in `lib/server/deploy/` with which others run the server: nginx's configuration, and
 * systemd's unit.
 */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { openLocal } from "../support/local_storage.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { until } from "../support/within.ts";
import { checkParity } from "./request_table.ts";

needing("processes", program("systemd-analyze"))(
  "systemd finds no fault in the units and timers, with the variables for metrics or without",
  () =>
    inFolder(async (folder) => {
      const names = ["media-head@.service"];
      for (const name of ["backup", "gate"]) {
        names.push(`media-head-${name}.service`, `media-head-${name}.timer`);
      }
      for (const name of names) {
        const text = await Deno.readTextFile(fromRoot(`lib/server/deploy/${name}`));
        const here = text.replace(/(?<=^ExecStart=)\S+/m, Deno.execPath());
        await Deno.writeTextFile(`${folder}/${name}`, here);
      }
      const paths = names.map((name) => `${folder}/${name.replace("@", "@1")}`);
      const verify = () => runProgram("systemd-analyze", ["verify", ...paths]);
      const fine = { code: 0, stdout: "", stderr: "" };
      assertEquals(await verify(), fine);

      const page = await Deno.readTextFile(fromRoot("lib/usage/README.md"));
      const [, variables = ""] = /```ini\n(\[Service\]\n[^]*?)```/.exec(page) ?? [];
      await Deno.mkdir(`${folder}/media-head@.service.d`);
      const dropIn = `${folder}/media-head@.service.d/metrics.conf`;
      await Deno.writeTextFile(dropIn, variables);
      assertEquals(await verify(), fine);
      await Deno.writeTextFile(dropIn, "[Service]\nUMask=everybody\n");
      assertStringIncludes((await verify()).stderr, "Failed to parse mode value");
    }),
);

needing("processes", program("nginx"))("nginx passes on what the server says", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(100_000));
  await using server = await ServerProcess.start({}, subject.folder);
  const configuration = Deno.readTextFileSync(fromRoot("lib/server/deploy/nginx.conf"))
    .replaceAll(":8000", `:${server.port}`);
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

/** Returns the path that a probe of README's Deployment requests, or the Dockerfile's HEALTHCHECK. */
async function probedPath(probe: string): Promise<string> {
  const isDocker = probe === "HEALTHCHECK";
  const file = isDocker ? "lib/server/deploy/Dockerfile" : "lib/server/README.md";
  const text = await Deno.readTextFile(fromRoot(file));
  const pattern = isDocker
    ? /^HEALTHCHECK .*http:\/\/127\.0\.0\.1:8000([^']*)'/m
    : new RegExp(`${probe}:\\s+httpGet: \\{ path: (\\S+), port: 8000 \\}`);
  assertMatch(text, pattern);
  return pattern.exec(text)?.[1] ?? "";
}

needing("processes")(
  "no probe takes the explanations away while the database is down",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), new Uint8Array(10));
    await subject.close();
    const dates = { DEPRECATED_AT: "2026-01-01", SUNSET_AT: "2026-06-30" };
    const settings = { ...dates, AFTER_SUNSET: "gone" };
    await using server = await ServerProcess.start(settings, subject.folder);
    const statusOf = async (path: string) => (await requestRaw(server.port, "GET", path)).status;
    assertEquals(await statusOf(await probedPath("startupProbe")), 200);
    await Deno.remove(`${subject.folder}/catalogue.sqlite`);
    await until("the loss", async () => await statusOf("/healthz") === 503);
    assertEquals(await statusOf(await probedPath("startupProbe")), 503);
    assertEquals(await statusOf(`/audio/${token}`), 410);
    for (const probe of ["readinessProbe", "livenessProbe", "HEALTHCHECK"]) {
      assertEquals(await statusOf(await probedPath(probe)), 200, probe);
    }
  },
);
