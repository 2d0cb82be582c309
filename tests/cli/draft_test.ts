/** The drafts of files that commands write: what is left of them, and the modes of the files. */

import { assert, assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../lib/usage/mod.ts";
import { inFolder, makeCatalogue, mediaCommand } from "../support/media_cli.ts";
import { openLedgerIn } from "../support/local_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { Relay } from "../support/relay.ts";
import { mustRun } from "../support/run.ts";
import { until, within } from "../support/within.ts";

const LIFECYCLE = ["run", "--quiet", "--allow-all", fromRoot("lib/usage/lifecycle_program.ts")];

const draftIn = (folder: string) =>
  [...Deno.readDirSync(folder)].find(({ name }) => name.includes("unfinished"))?.name;

needing(...POSTGRES)(
  "a command that Ctrl-C ends while it waits for the database leaves no draft",
  () =>
    inFolder(async (folder) => {
      await using postgres = await PostgresServer.start();
      const name = await postgres.createDatabase();
      const url = postgres.urlOf(name);
      const CONTENT = "none";
      await makeCatalogue(folder, { DATABASE_URL: url, CONTENT });
      const routes = { "/v1": definePolicy({ deprecatedAt: "2026-11-21" }) };
      await (await openUsage(url, { routes, log() {} })).close();
      const file = `${folder}/written`;
      await Deno.writeTextFile(
        `${folder}/input`,
        '{}\n{"location":"https://h/a","kind":"audio"}\n',
      );
      const commands = (url: string): Record<string, Deno.Command> => {
        const media = (...args: string[]) =>
          mediaCommand(folder, args, { DATABASE_URL: url, CONTENT });
        return {
          "lifecycle usage": new Deno.Command(Deno.execPath(), {
            args: [...LIFECYCLE, "usage", "--database", url, "--html", file],
            stdin: "null",
            stdout: "piped",
            stderr: "piped",
          }),
          "media usage": media("usage", "--html", file),
          "media import": media("import", `${folder}/input`, "--rejects", file),
        };
      };
      for (const what of Object.keys(commands(""))) {
        await using relay = new Relay(postgres.port);
        const ended = Promise.withResolvers<void>();
        let isWaiting = false;
        relay.onSent = async () => {
          if (draftIn(folder) === undefined) return;
          isWaiting = true;
          await ended.promise;
        };
        await Deno.writeTextFile(file, "of an earlier run");
        const child = commands(postgres.urlOf(name, relay.port))[what]?.spawn();
        assert(child !== undefined);
        const output = child.output();
        await until(`${what} to wait`, () => isWaiting);
        child.kill("SIGINT");
        const { code } = await within(`the end of ${what}`, output, { process: child });
        ended.resolve();
        assertEquals([code, draftIn(folder)], [130, undefined], what);
        assertEquals(await Deno.readTextFile(file), "of an earlier run", what);
      }
    }),
);

needing("processes", program("bash"))(
  "a file that a command replaces keeps its mode, whatever the umask",
  () =>
    inFolder(async (folder) => {
      await makeCatalogue(folder);
      await (await openLedgerIn(folder)).close(); // as a server does
      const file = `${folder}/written`;
      const record = `sqlite:${folder}/catalogue.sqlite-ledger`;
      const commands: Record<string, readonly string[]> = {
        "media usage": ["media", "usage", "--html", file],
        "media import": ["media", "import", "/dev/null", "--rejects", file],
        "lifecycle usage": ["usage", "--database", record, "--html", file],
      };
      for (const [what, args] of Object.entries(commands)) {
        for (const mode of [0o600, 0o644, 0o660]) {
          for (const umask of ["022", "077"]) {
            await Deno.writeTextFile(file, "of an earlier run");
            await Deno.chmod(file, mode);
            await run(folder, umask, args);
            const info = await Deno.stat(file);
            assertEquals((info.mode ?? 0) & 0o777, mode, `${what} under ${umask}`);
          }
        }
      }
      // One that was not there is as the umask says.
      for (const [what, args] of Object.entries(commands)) {
        await Deno.remove(file);
        await run(folder, "027", args);
        assertEquals(((await Deno.stat(file)).mode ?? 0) & 0o777, 0o640, what);
      }
    }),
);

/** Runs a command under a umask. */
async function run(folder: string, umask: string, args: readonly string[]): Promise<void> {
  const module = args[0] === "media"
    ? ["run", "--quiet", "--allow-all", fromRoot("main.ts")]
    : LIFECYCLE;
  const words = ["-c", `umask ${umask}; exec "$@"`, "bash", Deno.execPath(), ...module, ...args];
  const env = { DATABASE_URL: `sqlite:${folder}/catalogue.sqlite`, CONTENT: `${folder}/files` };
  await mustRun("bash", words, { env });
}
