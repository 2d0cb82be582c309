/**
 * The files in `lib/server/deploy/` with which others run the server: nginx's configuration, and
 * systemd's unit.
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { openLocal } from "../support/local_storage.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { checkParity } from "./request_table.ts";

needing("processes", program("systemd-analyze"))(
  "systemd finds no fault in the unit",
  () =>
    inFolder(async (folder) => {
      const unit = Deno.readTextFileSync(fromRoot("lib/server/deploy/media-head@.service"))
        .replace("/usr/local/bin/deno", Deno.execPath());
      const verify = async (text: string) => {
        Deno.writeTextFileSync(`${folder}/media-head@.service`, text);
        const args = ["verify", `${folder}/media-head@1.service`];
        return await new Deno.Command("systemd-analyze", { args }).output();
      };
      const { code, stderr } = await verify(unit);
      assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
      const wrong = await verify(unit.replace("UMask=0077", "UMask=everybody"));
      assertStringIncludes(new TextDecoder().decode(wrong.stderr), "Failed to parse mode value");
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
