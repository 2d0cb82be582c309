/** The permissions in `deno.json`, as operators meet them. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { mustRun } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes");

/** The permissions of the start task, with its project in any folder. */
const START = ["--quiet", "--no-prompt", `--config=${fromRoot("deno.json")}`, "-P"];

test("a server may use ./data only, and prints the command for any other place, which serves", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/a b`);
    const environment = {
      DATABASE_URL: `sqlite:${folder}/a b/catalogue.sqlite`,
      CONTENT: `${folder}/it's`,
    };
    const start = (flags: readonly string[]) => ServerProcess.start(environment, folder, { flags });
    const { message } = await assertRejects(() => start(START), Error);
    assertMatch(message, /cannot start: Deno's permissions do not allow .*a b\/ and .*it's /);
    assertEquals([...Deno.readDirSync(folder)].length, 1); // nothing was created

    const command = /^ {2}(deno run .* -P) (.*) main\.ts$/m.exec(message);
    assert(command, message);
    // The shell splits it.
    const split = await mustRun("sh", ["-c", `printf '%s\\n' ${command[2]}`]);
    const flags = split.trimEnd().split("\n");
    assertEquals(flags, [
      `--allow-read=.env,${folder}/a b/,${folder}/it's`,
      `--allow-write=${folder}/a b/,${folder}/it's`,
    ]);
    await using server = await start([...START, ...flags]);
    assertEquals((await requestRaw(server.port, "HEAD", "/healthz")).status, 200);
  }));

test("the permissions of the start task reach .env, its data and the samples only", () =>
  inFolder(async (folder) => {
    const probe = `console.log(["read", "write"].map((name) => Deno.args.map((path) =>
      Deno.permissions.querySync({ name, path }).state === "granted")))`;
    await Deno.writeTextFile(`${folder}/probe.ts`, probe);
    const inside = ["main.ts", ".env", "data", "data/files/x", "lib/publishing/samples/a"];
    const paths = [...inside.map(fromRoot), folder, "/etc/passwd"];
    const words = ["run", ...START, `${folder}/probe.ts`, ...paths];
    const stdout = await mustRun(Deno.execPath(), words, { env: { NO_COLOR: "1" } });
    assertEquals(JSON.parse(stdout.replaceAll(/\s/g, "")), [
      [false, true, true, true, true, false, false],
      [false, false, true, true, false, false, false],
    ]);
  }));
