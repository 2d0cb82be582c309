/** Commands that only read, on a read-only mount. */

import { assertEquals, assertMatch } from "@std/assert";
import { copy } from "../support/copy.ts";
import { inFolder, media, mediaHere } from "../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { type CommandResult, runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { DISK, SmallDisk } from "../support/small_disk.ts";
import { until } from "../support/within.ts";

needing(...DISK)(
  "a record and its catalogue can be read on a read-only mount, however they were left",
  () =>
    inFolder(async (folder) => {
      await using disk = await SmallDisk.mount(4_000);
      const places = ["in use", "without an index", "closed"].map((name) =>
        `${disk.folder}/${name}`
      );
      const [inUse = "", withoutIndex = "", closed = ""] = places;
      const server = await ServerProcess.start({}, folder);
      const published = await mediaHere(folder, ["publish", SAMPLE_MP3, "--json"]);
      const { token } = JSON.parse(published.stdout);
      await requestRaw(server.port, "HEAD", `/audio/${token}`, { "User-Agent": "MyPod/1.0" });
      const report = async (folder: string) => (await mediaHere(folder, ["usage"])).stdout;
      await until("the call on record", async () => (await report(folder)).includes("MyPod"));
      copy(folder, inUse);
      copy(folder, withoutIndex);
      for (const name of ["catalogue.sqlite-shm", "catalogue.sqlite-ledger-shm"]) {
        await Deno.remove(`${withoutIndex}/${name}`);
      }
      await server.stop();
      copy(folder, closed);
      await disk.makeReadOnly();
      const before = places.map((place) => [...Deno.readDirSync(place)].map(({ name }) => name));

      for (const place of places) {
        const runMedia = async (expected: RegExp, ...args: string[]) => {
          check(await media(place, args), expected, `${place}: ${args}`);
        };
        await runMedia(/MyPod/, "usage");
        await runMedia(new RegExp(token), "list");
        await runMedia(new RegExp(token), "export");
        await runMedia(new RegExp(token), "show", token);
        await runMedia(/^1 item verified: 1 as published/, "verify", "--content");
        const args = ["run", "--quiet", "--allow-all", fromRoot("lib/usage/lifecycle_program.ts")];
        const record = ["usage", "--database", `sqlite:${place}/catalogue.sqlite-ledger`];
        const ended = await runProgram(Deno.execPath(), [...args, ...record]);
        check(ended, /MyPod/, `${place}: lifecycle usage`);
      }
      const after = places.map((place) => [...Deno.readDirSync(place)].map(({ name }) => name));
      assertEquals(after, before);
    }),
);

function check({ code, stdout, stderr }: CommandResult, expected: RegExp, what: string): void {
  assertEquals([code, stderr], [0, ""], what);
  assertMatch(stdout, expected, what);
}
