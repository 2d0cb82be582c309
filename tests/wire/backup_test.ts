/** Backup and restore with the documentation's own commands, while items change. */

import { assert, assertEquals } from "@std/assert";
import { sqliteAt } from "../../lib/database/place.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import type { OpenStorage } from "../../lib/storage/engines/open_storage.ts";
import { openEngine as openSqlite } from "../../lib/storage/engines/sqlite.ts";
import type { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openIn, openLedgerIn } from "../support/local_storage.ts";
import { inFolder, mediaHere } from "../support/media_cli.ts";
import { publishTo } from "../support/media_subject.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { openEngine as openPostgres } from "../support/postgres_engine.ts";
import { requestRaw } from "../support/raw_http.ts";
import { runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const NEEDS = ["processes", LINUX, program("bash"), program("flock")] as const;

/** The approximate number of items at a time, and loops that publish and unpublish. */
const [ITEMS, LOOPS] = [80, 4];

const OPERATING = "lib/server/README.md";

/** Returns the first shell command for operators that contains a text. */
async function commandWith(text: string): Promise<string> {
  const markdown = await Deno.readTextFile(fromRoot(OPERATING));
  const blocks = markdown.matchAll(/\n```(?:ba)?sh\n(.*?)\n```\n/gs).map(([, block = ""]) => block);
  const found = blocks.find((block) => block.includes(text));
  assert(found !== undefined, `${OPERATING} has no command with ${text}`);
  return inThatFolder(found);
}

/** Returns the program that makes a backup, at the places of a test. */
async function backupProgram(): Promise<string> {
  const program = await Deno.readTextFile(fromRoot("lib/server/deploy/media-head-backup"));
  const commands = program.replaceAll(/^#.*\n/gm, "");
  return inThatFolder(commands.replace("/usr/local/bin/deno", Deno.execPath()));
}

/** Returns a command whose places are in the folder in which it runs, and no others. */
function inThatFolder(command: string): string {
  const places = command.replace(/cd \/var\/lib(?: && |\n)/, "")
    .replaceAll(/\bmedia-head-backup\b/g, "backup").replaceAll(/\bmedia-head(?=\/)/g, "data");
  assert(!places.includes("/var/lib"), places);
  return places;
}

/** Runs a shell script in a folder, and returns its exit status and output. */
async function shell(script: string, folder: string, environment: Record<string, string> = {}) {
  const { INIT_CWD: _, ...inherited } = Deno.env.toObject();
  const env = { ...inherited, NO_COLOR: "1", ...environment };
  const options = { cwd: folder, clearEnv: true, env };
  const { code, stdout, stderr } = await runProgram("bash", ["-c", script], options);
  return { code, said: stdout + stderr };
}

/** What a script does of which nothing is to be said. */
const DONE = { code: 0, said: "" };

/** Makes a folder like the project's, without data. */
async function inProject(body: (folder: string) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    for (const name of ["main.ts", "lib", "deno.json", "deno.lock"]) {
      await Deno.symlink(fromRoot(name), `${folder}/${name}`);
    }
    await Deno.mkdir(`${folder}/data`);
    await body(folder);
  });
}

/** Publishes and unpublishes at full speed until disposed of. */
class Load implements AsyncDisposable {
  changes = 0;
  readonly published: Token[] = [];
  #isOver = false;
  readonly #loops: Promise<void>[];

  readonly storage: MediaStorage;
  readonly #close: () => Promise<void>;

  constructor({ media, close }: OpenStorage) {
    this.storage = media;
    this.#close = close;
    this.#loops = Array.from({ length: LOOPS }, () => this.#run());
  }

  /** Waits for a number of further changes. */
  async until(changes: number): Promise<void> {
    const end = this.changes + changes;
    await until("the changes", () => this.changes >= end);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#close();
  }

  async #run(): Promise<void> {
    const content = () => crypto.getRandomValues(new Uint8Array(2_000));
    while (!this.#isOver) {
      if (Math.random() * 2 * ITEMS > this.published.length) {
        const { token } = await publishTo(this.storage, newMetadata(), content());
        this.published.push(token);
      } else {
        const index = Math.floor(Math.random() * this.published.length);
        const [token] = this.published.splice(index, 1);
        if (token !== undefined) await this.storage.unpublish(token, Date.now());
      }
      this.changes++;
    }
  }
}

/** Checks that a backup is complete, and returns its number of items. */
async function verifyBackup(folder: string, databaseUrl: string): Promise<number> {
  const environment = { DATABASE_URL: databaseUrl, CONTENT: `${folder}/backup/files` };
  const verify = ["verify", "--content", "--json"];
  const { code, stdout, stderr } = await mediaHere(folder, verify, environment);
  assertEquals([code, stderr, stdout.split("\n").length], [0, "", 2], stdout);
  const { summary } = JSON.parse(stdout);
  assertEquals(summary, { ...summary, missing: 0, different: 0, failed: 0, unused: 0 });
  return summary.same;
}

/** Backs up while items change, and returns how many the backup has. */
async function backUpUnderLoad(
  folder: string,
  engine: Promise<Engine>,
  command: string,
  environment: Record<string, string> = {},
): Promise<Load> {
  const opened = await openIn(`${folder}/data`, engine);
  await opened.media.prepare();
  const load = new Load(opened);
  await load.until(2 * ITEMS);
  for (const night of ["first", "second"]) {
    const done = await shell(`umask 022\n${command}`, folder, environment);
    assertEquals({ night, ...done }, { night, ...DONE });
    await load.until(2 * ITEMS);
  }
  const left = [...Deno.readDirSync(folder)].map(({ name }) => name);
  assertEquals(left.filter((name) => name.startsWith("backup")), ["backup"]);
  const shown = await shell("find backup -perm /077 ! -path 'backup/files*'", folder);
  await load.stop();
  assertEquals(shown, DONE, "others may read the catalogue");
  return load;
}

needing(...NEEDS)(
  "a backup taken while items change is complete, and is restored by the documented commands",
  () =>
    inProject(async (folder) => {
      const path = `${folder}/data/catalogue.sqlite`;
      const engine = openSqlite(sqliteAt(path));
      const environment = { DATABASE_URL: `sqlite:${path}`, CONTENT: `${folder}/data/files` };
      await (await openLedgerIn(`${folder}/data`)).close(); // as a server does
      await using load = await backUpUnderLoad(folder, engine, await backupProgram());
      const count = await verifyBackup(folder, `sqlite:${folder}/backup/catalogue.sqlite`);
      assert(count > ITEMS / 2, `${count} items`);
      assert((await Deno.stat(`${folder}/backup/catalogue.sqlite-ledger`)).size > 0);

      // Restored after a server that had items from after the backup, and lacked others.
      const server = await ServerProcess.start(environment, folder);
      const statusOf = async (token: string, { port } = server) =>
        (await requestRaw(port, "HEAD", `/media/${token}`)).status;
      const listed = await mediaHere(folder, ["export"], {
        ...environment,
        DATABASE_URL: `sqlite:${folder}/backup/catalogue.sqlite`,
      });
      const records = listed.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
      const now = new Set<string>(load.published);
      const lost = records.find(({ state, token }) => state === "published" && !now.has(token));
      const later = load.published.findLast((token) =>
        !records.some((record) => record.token === token)
      ) as Token;
      assertEquals([await statusOf(lost.token), await statusOf(later)], [410, 200]);
      await server.stop();
      const commands = (await commandWith("rm -f")).match(/^(?:rm|cp|\(umask) .*$/gm);
      const restore = commands?.join("\n") ?? "";
      assertEquals(await shell(restore, folder), DONE);
      await using restored = await ServerProcess.start(environment, folder);
      assertEquals(await statusOf(lost.token, restored), 200);
      assertEquals(await statusOf(later, restored), 404);
      const verified = await mediaHere(folder, ["verify"], environment);
      assertEquals(verified.code, 1, "content of later items");
    }),
);

/** Describes a database as the service `media`, and returns the variables that say where. */
async function serviceOf(url: string, folder: string): Promise<Record<string, string>> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const [service, passwords] = [`${folder}/service.conf`, `${folder}/passwords`];
  const place = `host=${hostname}\nport=${port}\ndbname=${pathname.slice(1)}\nuser=${username}\n`;
  await Deno.writeTextFile(service, `[media]\n${place}`);
  await Deno.writeTextFile(passwords, `${hostname}:${port}:*:${username}:${password}\n`);
  await Deno.chmod(passwords, 0o600); // libpq ignores one that others can read
  return { PGSERVICEFILE: service, PGPASSFILE: passwords };
}

needing(...NEEDS, ...POSTGRES, program("pg_dump"), program("pg_restore"))(
  "a backup of PostgreSQL and a folder taken while items change is complete",
  () =>
    inProject(async (folder) => {
      await using postgres = await PostgresServer.start();
      const url = postgres.urlOf(await postgres.createDatabase());
      const page = await Deno.readTextFile(fromRoot(OPERATING));
      const dump = inThatFolder(/`(pg_dump [^`]*)`/.exec(page)?.[1] ?? "");
      const command = (await backupProgram()).replace(/ {2}for .*\n {2}done\n/s, `  ${dump}\n`);
      assert(!command.includes("VACUUM"));
      const dumping = await serviceOf(url, folder);
      await using _load = await backUpUnderLoad(folder, openPostgres(url), command, dumping);
      const restored = postgres.urlOf(await postgres.createDatabase());
      const away = "cp -r --preserve=mode backup away && rm -r backup && mv away backup"; // breaks hard links
      assertEquals(await shell(away, folder), DONE);
      const restore = inThatFolder(/pg_restore [^`]*/.exec(page)?.[0] ?? "");
      assertEquals(await shell(restore, folder, await serviceOf(restored, folder)), DONE);
      const count = await verifyBackup(folder, restored);
      assert(count > ITEMS / 2, `${count} items`);
    }),
);
