import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken, type Token } from "../../../lib/storage/token.ts";
import { ITEM_COLUMNS } from "../../../lib/storage/sql/catalogue.ts";
import { callsIn, openIn, openLocal } from "../../support/local_storage.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { SAMPLE_MP3 } from "../../support/paths.ts";
import { LINUX, needing, program } from "../../support/permissions.ts";
import { field, requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";
import { newMetadata } from "../storage_suite.ts";

const test = needing("processes", LINUX, program("setpriv"));
const testReplaced = needing("processes", program("python3"));

/** Runs a server as a user who is subject to file permissions, even if the tests run as root. */
const RUNNER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"];

/** Milliseconds within which a change of a file must show. */
const BOUND = 10_000;

/** What happens to a file, given a sound copy, and how it is repaired. */
type Fault = [
  what: string,
  damage: (path: string) => Promise<unknown>,
  mend: (path: string, copy: string) => Promise<unknown>,
];

const moveBack = (path: string) => Deno.rename(`${path}.aside`, path);
const moveCopy = (path: string, copy: string) => Deno.rename(copy, path);

const FAULTS: Fault[] = [
  ["is moved away", (path) => Deno.rename(path, `${path}.aside`), moveBack],
  ["is deleted", (path) => Deno.remove(path), moveCopy],
  [
    "is replaced by a folder",
    async (path) => {
      await Deno.rename(path, `${path}.aside`);
      await Deno.mkdir(path);
    },
    async (path) => {
      await Deno.remove(path);
      await moveBack(path);
    },
  ],
  [
    "is replaced by another program's",
    async (path) => {
      await Deno.rename(path, `${path}.aside`);
      using other = new DatabaseSync(path);
      other.exec("CREATE TABLE other (a)");
    },
    moveBack,
  ],
  [
    "is overwritten with as much garbage",
    (path) => overwrite(path, (bytes) => bytes.map((_, index) => index * 31 >> 3)),
    moveCopy,
  ],
  ["is truncated", (path) => Deno.truncate(path), moveCopy],
  ["becomes unreadable", (path) => Deno.chmod(path, 0), (path) => Deno.chmod(path, 0o644)],
];

/** Overwrites a file in place. */
async function overwrite(
  path: string,
  change: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>,
): Promise<void> {
  using file = await Deno.open(path, { read: true, write: true });
  const bytes = new Uint8Array((await file.stat()).size);
  assertEquals(await file.read(bytes), bytes.length);
  await file.seek(0, Deno.SeekMode.Start);
  assertEquals(await file.write(change(bytes)), bytes.length);
}

/** Rows that make a ledger grow, so that its first page is in the log, too. */
const GROWTH = 400;

function grow(path: string): void {
  using database = new DatabaseSync(path, { timeout: 5_000 });
  database.exec(`
    WITH RECURSIVE number (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < ${GROWTH})
    INSERT INTO usage SELECT '2027-01-01', '/', 'HEAD', 'deprecated', '2xx', 'none', n, 1, 0, 0
    FROM number`);
}

/** A copy made by SQLite while the file is in use. */
function copyTo(path: string, copy: string): void {
  using database = new DatabaseSync(path, { timeout: 5_000 });
  database.exec(`VACUUM INTO '${copy}'`);
}

/** Waits until a condition holds. */
async function until(what: string, isMet: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + BOUND;
  while (!await isMet()) {
    assert(performance.now() < end, `not within ${BOUND} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function statusOf(server: ServerProcess, method: string, target: string): Promise<number> {
  const response = await requestRaw(server.port, method, target);
  assertEquals(field(response, "retry-after"), response.status === 503 ? "5" : undefined);
  return response.status;
}

const isSound = (path: string) => {
  using database = new DatabaseSync(path);
  assertEquals({ ...database.prepare("PRAGMA integrity_check").get() }["integrity_check"], "ok");
};

test("two servers notice whatever happens to the catalogue's file, and recover once it is sound", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
  await subject.storage.close();
  const [path, copy] = [`${subject.folder}/catalogue.sqlite`, `${subject.folder}/copy.sqlite`];
  const start = () => ServerProcess.start({ CACHE_TTL: "1" }, subject.folder, { runner: RUNNER });
  await using one = await start();
  await using other = await start();
  const requests = [one, other].flatMap((server) =>
    [["HEAD", `/media/${token}`], ["GET", `/media/${token}`], ["GET", "/healthz"]].map(
      ([method = "", target = ""]) => () => statusOf(server, method, target),
    )
  );
  const allAre = async (status: number) =>
    (await Promise.all(requests.map((send) => send()))).every((is) => is === status);

  for (const [what, damage, mend] of FAULTS) {
    assert(await allAre(200), what);
    copyTo(path, copy);
    await damage(path);
    await until(`503, when it ${what}`, () => allAre(503));
    await mend(path, copy);
    await until(`200, after it ${what}`, () => allAre(200));
    const { code, stdout, stderr } = await media(subject.folder, [
      "publish",
      SAMPLE_MP3,
      "--again",
      "--json",
    ]);
    assertEquals([code, stderr], [0, ""], what);
    const target = `/media/${JSON.parse(stdout).token}`;
    await until(
      `an item published after it ${what}`,
      async () =>
        await statusOf(one, "HEAD", target) === 200 && await statusOf(other, "GET", target) === 200,
    );
    for await (const { name } of Deno.readDir(subject.folder)) {
      if (/^copy|aside/.test(name)) await Deno.remove(`${subject.folder}/${name}`);
    }
  }
  isSound(path);
  for (const server of [one, other]) {
    const { code, log } = await server.stop();
    assertEquals(code, 0);
    const faults = log.filter(({ event }) => event === "error").map(({ cause }) => String(cause));
    for (
      const reason of [
        /No such file/,
        /not a catalogue/,
        /not a database/,
        /no longer holds a catalogue/,
      ]
    ) {
      assert(faults.some((fault) => reason.test(fault)), `${reason} in ${faults.join("\n")}`);
    }
    for (const fault of faults) {
      assertMatch(fault, /^StorageError: sqlite: the catalogue "[^"]*" \(DATABASE_URL\) cannot be/);
      assert(!fault.includes(token));
    }
  }
});

/** Makes a larger catalogue: the item is unpublished, and copied under many other tokens. */
function makeOther(path: string, other: string, token: Token): Token {
  copyTo(path, other);
  using database = new DatabaseSync(other);
  const record = `SELECT ?, ${ITEM_COLUMNS} FROM item WHERE token = ?`;
  const insert = database.prepare(`INSERT INTO item (token, ${ITEM_COLUMNS}) ${record}`);
  const tokens = Array.from({ length: 2_000 }, newToken);
  database.exec("BEGIN");
  for (const other of tokens) insert.run(other, token);
  database.prepare(
    `UPDATE item SET unpublished_at = 5, type = NULL, length = NULL, digest = NULL,
       published_at = NULL, name = NULL, language = NULL WHERE token = ?`,
  ).run(token);
  database.exec("COMMIT");
  return tokens[1_000] as Token;
}

/** Changes the catalogue, and is killed before the log is flushed to the file. */
const KILLED = `
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("UPDATE item SET name = 'changed'")
os.kill(os.getpid(), 9)
`;

type Replacement = [how: string, replace: (other: string, path: string) => Promise<void>];
const REPLACEMENTS: Replacement[] = [
  ["moved over", Deno.rename],
  ["moved over, beside the log of a killed writer", async (other, path) => {
    await new Deno.Command("python3", { args: ["-c", KILLED, path] }).output();
    assert((await Deno.stat(`${path}-wal`)).size > 0);
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // longer than the check interval
    await Deno.rename(other, path);
  }],
  ["copied over", async (other, path) => {
    await Deno.writeFile(path, await Deno.readFile(other)); // in place
  }],
];

for (const [how, replace] of REPLACEMENTS) {
  testReplaced(
    `two servers serve another catalogue that is ${how}, and then a backup of the first`,
    async () => {
      await using subject = await openLocal();
      const { token } = await subject.publish(newMetadata(), new Uint8Array(1_000));
      await subject.storage.close();
      const [path, other, backup] = ["catalogue", "other", "backup"].map((name) =>
        `${subject.folder}/${name}.sqlite`
      ) as [string, string, string];
      await using one = await ServerProcess.start({ CACHE_TTL: "3600" }, subject.folder);
      await using two = await ServerProcess.start({ CACHE_TTL: "3600" }, subject.folder);
      const are = async (expected: Record<Token, number>) => {
        const statuses = [one, two].flatMap((server) =>
          Object.entries(expected).flatMap(([token, status]) =>
            ["HEAD", "GET"].map(async (method) =>
              await statusOf(server, method, `/media/${token}`) === status
            )
          )
        );
        return (await Promise.all(statuses)).every(Boolean);
      };
      const publish = async () => {
        const published = await media(subject.folder, ["publish", SAMPLE_MP3, "--again", "--json"]);
        assertEquals([published.code, published.stderr], [0, ""]);
        return JSON.parse(published.stdout).token as Token;
      };

      const before = await publish();
      await until("what was published before", () => are({ [token]: 200, [before]: 200 }));
      copyTo(path, backup);
      const present = makeOther(path, other, token);
      assert(await are({ [present]: 404 }));
      await replace(other, path);
      await until("what the other has", () => are({ [token]: 410, [before]: 200, [present]: 200 }));
      const after = await publish();
      await until("what was published after", () => are({ [after]: 200, [token]: 410 }));
      isSound(path);

      await Deno.rename(backup, path);
      await until(
        "what the backup has",
        () => are({ [token]: 200, [before]: 200, [present]: 404, [after]: 404 }),
      );
      const last = await publish();
      await until("what was published last", () => are({ [last]: 200, [token]: 200 }));
      isSound(path);
      const storage = await openIn(subject.folder);
      const listed = await Array.fromAsync(storage.list(), ([token]) => token);
      await storage.close();
      assertEquals(listed, [token, before, last].toSorted());
    },
  );
}

test("a server keeps its counts while the ledger's file is unusable", async () => {
  await Promise.all(FAULTS.map(([what, damage, mend]) =>
    inFolder(async (folder) => {
      const [path, copy] = [`${folder}/catalogue.sqlite-ledger`, `${folder}/copy`];
      await using server = await ServerProcess.start({}, folder, { runner: RUNNER });
      const target = `/audio/${newToken()}`;
      const call = async (times: number) => {
        for (let time = 0; time < times; time++) {
          assertEquals((await requestRaw(server.port, "HEAD", target)).status, 404, what);
        }
      };
      await call(10);
      await until(`counts before it ${what}`, async () => await callsIn(folder) === 10);
      grow(path);
      copyTo(path, copy);
      await damage(path);
      await call(20);
      await new Promise((resolve) => setTimeout(resolve, 7_000)); // a flush is attempted, and fails
      await call(30);
      await mend(path, copy);
      const { code, log } = await server.stop();
      assertEquals(code, 0, what);
      const faults = log.filter(({ event }) => event === "error");
      assertEquals(faults.length, 1, `${what}: ${JSON.stringify(faults)}`);
      assertMatch(String(faults[0]?.["cause"]), /the ledger "[^"]*" \(DATABASE_URL\) cannot be/);
      assertEquals(await callsIn(folder), 60 + GROWTH, `it ${what}`);
      isSound(path);
    })
  ));
});
