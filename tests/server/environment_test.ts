/**
 * The file `.env`: what it says reaches the server and the commands, or stops them.
 */

import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { ConfigError } from "../../lib/server/config.ts";
import { readVariables } from "../../lib/server/environment.ts";
import { newToken } from "../../lib/storage/token.ts";
import { copyProject } from "../support/copy.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";

needing("files")(
  "readVariables() takes every value as it stands in the file",
  () =>
    inFolder(async (folder) => {
      const rows: [text: string, value: string | undefined][] = [
        ["A=pa$word", "pa$word"],
        ["\ufeffA=1\nB=2", "1"],
        ["# c = d\n\n  export A = 'x # y' # z\r\n", "x # y"],
        ['A="1\nx\n3"\nB=2', "1\nx\n3"],
        ["A=", ""],
        ["B=1", undefined],
      ];
      for (const [text, value] of rows) {
        await Deno.writeTextFile(`${folder}/.env`, text);
        assertEquals(readVariables(`${folder}/.env`).get("A"), value, text);
      }
      await Deno.writeTextFile(`${folder}/.env`, "PATH=x\nOTEL_DENO=true\nA=1\nSUNSET=2027-06-30");
      const { get, unused } = readVariables(`${folder}/.env`);
      assertEquals([get("A"), get("OTEL_DENO")], ["1", undefined]);
      assertEquals(get("PATH"), Deno.env.get("PATH"));
      assertEquals([...unused], ["OTEL_DENO", "SUNSET"]);
      assertEquals(readVariables(`${folder}/none`).unused.size, 0);
    }),
);

/** Files that cannot be used, and why. */
const UNUSABLE: [reason: RegExp, make: (path: string) => Promise<void>][] = [
  [/: it is not UTF-8$/, (path) => Deno.writeFile(path, Uint8Array.of(35, 0xe9, 10, 65, 61, 49))],
  [/: Is a directory .*$/, (path) => Deno.mkdir(path)],
  [/: No such file .*$/, (path) => Deno.symlink("/nowhere", path)],
  [/: line 3 is not NAME=VALUE$/, (path) => Deno.writeTextFile(path, "A='\n'\nPORT: 80\nB=1")],
];

needing("files")(
  "readVariables() refuses a file that cannot be used, with the reason",
  () =>
    inFolder(async (folder) => {
      for (const [index, [reason, make]] of UNUSABLE.entries()) {
        const path = `${folder}/${index}`;
        await make(path);
        const { message } = assertThrows(() => readVariables(path), ConfigError);
        assert(message.startsWith(`${path} cannot be read: `), message);
        assertMatch(message, reason);
      }
    }),
);

/** Runs a task of a project, whose settings are those of its `.env`. */
function run(project: string, task: string[], env: Record<string, string> = {}) {
  const args = ["task", "--quiet", ...task];
  const output = { stdout: "piped", stderr: "piped" } as const;
  return new Deno.Command(Deno.execPath(), { args, cwd: project, env, ...output }).spawn();
}

needing("processes")(
  "the server and the commands read .env, and the environment wins",
  () =>
    inFolder(async (project) => {
      copyProject(project);
      const lines = ["DEPRECATED_AT=2026-11-21", "SUNSET_AT=2999-06-30", "CACHE_MAX_AGE=7"];
      const wrong = ["PORT=1", "SUNSET=2027-06-30", "OTEL_DENO=true"];
      const places = ["HOST=127.0.0.1", "DATABASE_URL=sqlite:./data/here.sqlite"];
      await Deno.writeTextFile(`${project}/.env`, [...lines, ...wrong, ...places].join("\n"));
      const server = run(project, ["start"], { PORT: "0", CACHE_MAX_AGE: "9" });
      let log = "";
      let port: number | undefined;
      for await (const text of server.stderr.pipeThrough(new TextDecoderStream())) {
        log += text;
        port = Number(/"port":(\d+)/.exec(log)?.[1]);
        if (port) break;
      }
      assert(port, log);
      assertMatch(log, /"warning","message":"Nothing reads SUNSET, OTEL_DENO in \.env: /);
      const head = await requestRaw(port, "HEAD", `/audio/${newToken()}`);
      assertEquals(field(head, "sunset"), "Sun, 30 Jun 2999 00:00:00 GMT");
      const notice = await requestRaw(port, "HEAD", "/deprecation");
      assert(field(notice, "cache-control")?.startsWith("max-age=9,"));
      server.kill();
      await server.status;
      await server.stdout.cancel();
      const { stdout } = await run(project, ["media", "usage", "--json"]).output();
      const { policies } = JSON.parse(new TextDecoder().decode(stdout));
      assertEquals(policies["/audio/:token"].sunsetAt, "2999-06-30T00:00:00.000Z");

      // Neither starts without it, nor creates anything.
      await Deno.remove(`${project}/data`, { recursive: true });
      await Deno.remove(`${project}/.env`);
      await Deno.mkdir(`${project}/.env`);
      for (
        const [task, status] of [[["start"], 1], [["media", "import", "/dev/null"], 2]] as const
      ) {
        const { code, stderr } = await run(project, [...task]).output();
        assertEquals(code, status);
        assertMatch(new TextDecoder().decode(stderr), /\.env cannot be read: Is a directory/);
      }
      assert(![...Deno.readDirSync(project)].some(({ name }) => name === "data"));
    }),
);
