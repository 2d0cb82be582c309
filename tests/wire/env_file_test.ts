import { assert, assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";

const SUNSET = "2999-06-30T12:00:00.000Z";

/** The flags of a task before `main.ts`, without those that only work in the project's folder. */
function flagsOf(task: { command: string }): string[] {
  const [, flags = ""] = /^deno run (.*) -P .*main\.ts/.exec(task.command) ?? [];
  return flags.split(" ").filter((flag) => flag !== "--frozen" && flag !== "--watch");
}

needing("processes")(
  "the server and the commands read .env, and the environment takes precedence",
  async () => {
    const folder = await Deno.makeTempDir({ prefix: "media-head-" });
    await Deno.writeTextFile(
      `${folder}/.env`,
      `# the policy\nDEPRECATED_AT=2026-11-21\nSUNSET_AT="${SUNSET}"\nCACHE_MAX_AGE=7\nHOST=127.0.0.1\nPORT=1\n` +
        `DATABASE_URL=sqlite:${folder}/here.sqlite\nCONTENT=${folder}/files\n`,
    );
    const { tasks } = JSON.parse(await Deno.readTextFile(fromRoot("deno.json")));
    const run = (task: { command: string }, ...args: string[]) =>
      new Deno.Command(Deno.execPath(), {
        args: ["run", ...flagsOf(task), "--allow-all", fromRoot("main.ts"), ...args],
        cwd: folder,
        env: { PORT: "0", CACHE_MAX_AGE: "9" },
        stdout: "piped",
        stderr: "piped",
      }).spawn();
    for (const task of [tasks.start, tasks.dev]) {
      const server = run(task);
      const stdout = server.stdout.cancel();
      let log = "";
      let port: number | undefined;
      for await (const text of server.stderr.pipeThrough(new TextDecoderStream())) {
        log += text;
        port = Number(/"port":(\d+)/.exec(log)?.[1]);
        if (port) break;
      }
      assert(port, log);
      const head = await requestRaw(port, "HEAD", `/audio/${newToken()}`);
      assertEquals(field(head, "sunset"), new Date(SUNSET).toUTCString());
      const notice = await requestRaw(port, "HEAD", "/deprecation");
      assert(field(notice, "cache-control")?.startsWith("max-age=9,"));
      server.kill();
      await server.status;
      await stdout;
    }
    const { stdout } = await run(tasks.media, "media", "usage", "--json").output();
    const report = JSON.parse(new TextDecoder().decode(stdout));
    assertEquals(report.policy.sunsetAt, SUNSET);
    assert((await Deno.stat(`${folder}/here.sqlite`)).isFile);
    await Deno.remove(folder, { recursive: true });
  },
);
