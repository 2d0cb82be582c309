/** The file `.env`: what it says reaches the server and the commands, or stops them. */

import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { ConfigError } from "../../lib/server/config.ts";
import { readVariables } from "../../lib/server/environment.ts";
import { newToken } from "../../lib/storage/token.ts";
import { copyProject } from "../support/copy.ts";
import { inFolder } from "../support/media_cli.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { mustRun, runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";

needing("files")(
  "readVariables() takes every value as it stands in the file",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/.env`;
      assertEquals(readVariables(path).warnings, []);
      const rows: [text: string, value: string | undefined][] = [
        ["A=pa$word", "pa$word"],
        ["\ufeffA=1\nB=2", "1"],
        ["# c = d\n\n  export A = 'x # y' # z\r\n", "x # y"],
        ["A=", ""],
        ["B=1", undefined],
        ["A= \nB=2", ""],
        ["A=it's\nB='2'", "it's"],
        ["# B='1\nA='x' # isn't", "x"],
        [
          "A=postgres://u:p@h/d?sslmode=require&options=-c%20search_path%3Dm",
          "postgres://u:p@h/d?sslmode=require&options=-c%20search_path%3Dm",
        ],
        ["A=$HOME ${HOME} `id` $(id) \\n %S &", "$HOME ${HOME} `id` $(id) \\n %S &"],
        ['A="it\'s #1"', "it's #1"],
      ];
      for (const [text, value] of rows) {
        await Deno.writeTextFile(path, text);
        assertEquals(readVariables(path).get("A"), value, text);
      }
      await Deno.writeTextFile(path, "PATH=x\nOTEL_DENO=true\nA=1\nAWS_REGION=a");
      const { get, warnings } = readVariables(path);
      const values = ["A", "OTEL_DENO", "PATH"].map(get);
      assertEquals(values, ["1", undefined, Deno.env.get("PATH")]);
      assertEquals(warnings.length, 1);
      assertMatch(warnings[0] ?? "", /^Nothing reads PATH, OTEL_DENO, A in \.env: /);
    }),
);

needing("files")(
  "readVariables() refuses a file that cannot be used, with the reason",
  () =>
    inFolder(async (folder) => {
      type Row = [reason: string, make: (path: string) => Promise<void>];
      const file = (text: string) => (path: string) => Deno.writeTextFile(path, text);
      const notUtf8 = Uint8Array.of(35, 0xe9, 10, 65, 61, 49);
      const quotes = [`A="1`, "A='./data/files\nB=2\nC='3'", "A=`1\nB='`'", "  export A = '\n'"];
      const rows: Row[] = [
        ["it is not UTF-8)", (path) => Deno.writeFile(path, notUtf8)],
        ["it is not a file)", (path) => Deno.mkdir(path)],
        ["it is not a file)", (path) => Deno.symlink("/dev/null", path)],
        ["No such file ", (path) => Deno.symlink("/nowhere", path)],
        ["line 2 is not NAME=VALUE)", file("A=1\nPORT: 80\nB=1")],
        ...quotes.map((text): Row => ["line 2: a quote is not closed)", file(`# '\n${text}\n`)]),
      ];
      for (const [index, [reason, make]] of rows.entries()) {
        const path = `${folder}/${index}`;
        await make(path);
        assertThrows(() => readVariables(path), ConfigError, `${path} cannot be read (${reason}`);
      }
    }),
);

needing("processes", program("mkfifo"))(
  "a server, its check and a command refuse a .env that is a pipe, and do not wait for it",
  () =>
    inFolder(async (project) => {
      copyProject(project);
      await mustRun("mkfifo", [`${project}/.env`]);
      for (const args of [[], ["--check"], ["media", "list"]]) {
        const words = ["run", "--quiet", "--no-prompt", "--frozen", "-P", "main.ts", ...args];
        const { code, stderr } = await runProgram(Deno.execPath(), words, { cwd: project });
        assertMatch(stderr, /\/\.env cannot be read \(it is not a file\)/);
        assertEquals(code, args[0] === "media" ? 2 : 1);
      }
    }),
);

needing("processes")(
  "the server and the commands read .env, and the environment wins",
  () =>
    inFolder(async (project) => {
      copyProject(project);
      const lines = ["SUNSET_AT=2999-06-30", "CACHE_MAX_AGE=7", "PORT=1", "SUNSET=2027-06-30"];
      await Deno.writeTextFile(`${project}/.env`, lines.join("\n"));
      const flags = ["--quiet", "--no-prompt", "-P", `--allow-write=${project}`];
      const start = (read: string) =>
        ServerProcess.start({ CACHE_MAX_AGE: "9" }, `${project}/data`, {
          main: `${project}/main.ts`,
          flags: [...flags, read],
        });
      const usage = async () => {
        const env = { DEPRECATED_AT: "2026-11-21", DATABASE_URL: "sqlite:data/catalogue.sqlite" };
        const words = ["task", "--quiet", "media", "usage", "--json"];
        const options = { cwd: project, env };
        const { code, stdout, stderr } = await runProgram(Deno.execPath(), words, options);
        return `${code}: ${code === 0 ? stdout : stderr}`;
      };
      await Deno.mkdir(`${project}/data`);
      const server = await start(`--allow-read=${project}`);
      const head = await requestRaw(server.port, "HEAD", `/audio/${newToken()}`);
      assertEquals(field(head, "sunset"), "Sun, 30 Jun 2999 00:00:00 GMT");
      const notice = await requestRaw(server.port, "HEAD", "/deprecation");
      assert(field(notice, "cache-control")?.startsWith("max-age=9,"));
      const { log } = await server.stop();
      assertMatch(String(log[0]?.["message"]), /^Nothing reads SUNSET in \.env: /);
      // HOST is not in the file, and DATABASE_URL neither.
      assertMatch(
        String(log[1]?.["message"]),
        /^PORT, CACHE_MAX_AGE have other values in \.env than in the environment, which is used: /,
      );
      assertMatch(await usage(), /^0: [^]*2999-06-30T00:00:00/);

      const unseen = await assertRejects(() => start(`--allow-read=${project}/data`), Error);
      assertMatch(unseen.message, /cannot start: .*\/\.env cannot be read \(Requires read access/);
      const mistyped = "USAGE_DAYS=x\nUSAGE_DAY=1\nAWS_REGION=a";
      await Deno.writeTextFile(`${project}/.env`, mistyped);
      const failed = await assertRejects(() => start(`--allow-read=${project}`), Error);
      assertMatch(
        failed.message,
        /Nothing reads USAGE_DAY in \.env[^]*cannot start: USAGE_DAYS: /,
      );
      await Deno.writeTextFile(`${project}/.env`, "PORT");
      assertMatch(await usage(), /^2: .*\/\.env cannot be read \(line 1 is not NAME=VALUE\)/);
    }),
);

needing("processes")(
  "no command creates a catalogue where nobody named one, and each names what differs from .env",
  () =>
    inFolder(async (project) => {
      copyProject(project);
      await Deno.copyFile(SAMPLE_MP3, `${project}/a.mp3`);
      const runTask = (words: string[], environment: Record<string, string> = {}) => {
        const { INIT_CWD: _, DATABASE_URL: __, ...inherited } = Deno.env.toObject();
        const env = { ...inherited, NO_COLOR: "1", ...environment };
        const options = { cwd: project, clearEnv: true, env } as const;
        return runProgram(Deno.execPath(), ["task", "--quiet", ...words], options);
      };
      const missing = /DATABASE_URL\) cannot be opened/;
      const changes = [["publish", "a.mp3"], ["import", "/dev/null"], ["unpublish", newToken()]];
      for (const words of changes) {
        const { code, stdout, stderr } = await runTask(["media", ...words]);
        assertMatch(stderr, missing);
        assertEquals([code, stdout], [1, ""], stderr);
      }
      await assertRejects(() => Deno.stat(`${project}/data`), Deno.errors.NotFound);

      // A server creates it, and so does a command where it is named, in the file, too.
      const flags = ["--quiet", "--no-prompt", "-P", `--allow-write=${project}`];
      const server = await ServerProcess.start({ DATABASE_URL: "", CONTENT: "" }, project, {
        main: `${project}/main.ts`,
        flags: [...flags, `--allow-read=${project}`],
        runner: ["env", "-C", project],
      });
      await server.stop();
      const published = await runTask(["media", "publish", "a.mp3"]);
      assertEquals([published.code, published.stderr], [0, ""]);
      const url = "sqlite:./data/o&$it's%20.sqlite";
      const settings = `DEPRECATED_AT=2026-11-21\nDATABASE_URL=${url}\n`;
      await Deno.writeTextFile(`${project}/.env`, settings);
      const named = await runTask(["media", "publish", "a.mp3"]);
      assertMatch(named.stderr, /^media: created the catalogue ".*o&\$it's%20/);
      assertEquals(named.code, 0, named.stderr);
      await Deno.stat(`${project}/data/o&$it's%20.sqlite`);
      const other = { DATABASE_URL: "sqlite:./data/catalogue.sqlite" };
      const listed = await runTask(["media", "list"], other);
      const differs =
        /DATABASE_URL has another value in \.env than in the environment, which is used: /;
      assertMatch(listed.stderr, /^media: warning: /);
      assertMatch(listed.stderr, differs);
      assertMatch((await runTask(["start", "--check"], other)).stdout, differs);
      assertEquals((await runTask(["media", "list"], { DATABASE_URL: url })).stderr, "");
    }),
);
