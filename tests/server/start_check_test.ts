import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { dirname } from "node:path";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { MAIN } from "../support/routes.ts";
import { runProgram } from "../support/run.ts";
import { runMain, ServerProcess, storageIn, taskFlags } from "../support/server.ts";
import { USERS } from "../support/users.ts";

const test = needing("processes");

const check = (folder: string, environment?: Record<string, string>) =>
  runMain(["--check"], folder, environment);

/** Returns the names of all files in a folder, with their contents. */
function filesIn(folder: string): [string, string][] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }): [string, string][] => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesIn(path) : [[path, Deno.readTextFileSync(path)]];
  }).toSorted();
}

test("--check says what a start would announce, and creates nothing", () =>
  inFolder(async (folder) => {
    const { code, stdout, stderr } = await check(folder, {
      SUNSET_AT: "2998-01-01,video=2999-01-01",
      BROWNOUTS: "2997-05-03T09:00Z/PT1H",
      BROWNOUT_STATUS: "503",
      AFTER_SUNSET: "redirect",
    });
    assertEquals([code, stderr, filesIn(folder)], [0, "", []]);
    const brownout = "brownout from 2997-05-03T09:00:00Z to 2997-05-03T10:00:00Z (503)";
    assertEquals(stdout.split("\n").slice(1), [
      `Database: sqlite:${folder}/catalogue.sqlite (does not exist yet; a start creates it)`,
      `Content: ${folder}/files`,
      "Network: --allow-net=0.0.0.0:8000",
      `/audio/:token: deprecated from 2026-11-21T00:00:00Z; ${brownout}; removed at 2998-01-01T00:00:00Z (308)`,
      `/video/:token: deprecated from 2026-11-21T00:00:00Z; ${brownout}; removed at 2999-01-01T00:00:00Z (308)`,
      "",
    ]);
    assertMatch(stdout, /^media-head \d+\.\d+\.\d+ with Deno \d+\.\d+\.\d+, on 0\.0\.0\.0:8000\n/);
  }));

test("--check names unlikely dates, unless the record has announced them", async () => {
  await using subject = await openLocal();
  const dates = { SUNSET_AT: "2999-01-01", BROWNOUTS: "2998-01-01/P2D" };
  const warning = "Warning: /audio/:token and /video/:token: the brownout from " +
    "2998-01-01T00:00:00Z to 2998-01-03T00:00:00Z is longer than a day\n";
  const checkDates = async () => {
    const { code, stdout, stderr } = await check(subject.folder, dates);
    assertEquals([code, stderr], [0, ""]);
    return stdout;
  };
  assertStringIncludes(await checkDates(), warning);
  await using server = await ServerProcess.start(dates, subject.folder);
  assert(!(await checkDates()).includes("Warning"));
  await server.stop();
});

test("--check says what holds call off, and announces the dates that are left", async () => {
  await using subject = await openLocal();
  const until = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
  await using opened = await openLedgerIn(subject.folder);
  await opened.ledger.hold({ route: "/audio/:token", until, because: "billing is down" });
  const instant = (time: number) => `${new Date(time).toISOString().slice(0, 19)}Z`;
  const { code, stdout, stderr } = await check(subject.folder, {
    DEPRECATED_AT: "1999-01-01",
    SUNSET_AT: "2001-01-01",
    AFTER_SUNSET: "gone",
  });
  assertEquals([code, stderr], [0, ""]);
  const [audio, video] = stdout.split("\n").filter((line) => line.startsWith("/"));
  assertStringIncludes(
    audio ?? "",
    `/audio/:token: deprecated from 1999-01-01T00:00:00Z; removed at ${instant(until)} (410); ` +
      `held until ${instant(until)} (billing is down): the sunset at 2001-01-01T00:00:00Z `,
  );
  assertMatch(video ?? "", /removed at 2001-01-01T00:00:00Z \(410\)$/);
  assertMatch(
    stdout,
    /Warning: The sunset has passed, so these paths now answer as removed: \/video\/:token; /,
  );
  assertMatch(stdout, /Warning: \/audio\/:token and \/video\/:token: the sunset on 2001-01-01T/);
});

test("--check registers nothing in storage that exists, and notices the content of another catalogue", async () => {
  await using subject = await openLocal();
  await using other = await openLocal();
  await subject.publish(newMetadata(), new Uint8Array(10));
  await other.publish(newMetadata(), new Uint8Array(20));
  await using opened = await openLedgerIn(subject.folder);
  const fine = await check(subject.folder);
  assertEquals([fine.code, fine.stderr], [0, ""]);
  assertEquals(await opened.ledger.sessions(), []);
  const mixed = await check(subject.folder, { CONTENT: `${other.folder}/files` });
  assertEquals(mixed.code, 1);
  assertMatch(mixed.stderr, / \(CONTENT\) is not /);
});

test("--check prints every reason why a server would not start, once", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    await Deno.mkdir(`${folder}/linked`);
    await Deno.symlink("../file", `${folder}/linked/lock`);
    const before = filesIn(folder);
    const bucket = {
      CONTENT: "s3://bucket",
      AWS_ACCESS_KEY_ID: "id",
      AWS_SECRET_ACCESS_KEY: "SECRET",
      AWS_REGION: "eu",
      AWS_ENDPOINT_URL_S3: "http://127.0.0.1:2",
    };
    const query = "sslmode=require&sslrootcert=/elsewhere/a.pem";
    const rows: [environment: Record<string, string>, ...reasons: RegExp[]][] = [
      [{ PORT: "x", SUNSET_AT: "y" }, /PORT: expected/, /SUNSET_AT: expected/],
      [
        { REUSE_PORT: "true", CONTENT: "/elsewhere/files" },
        /REUSE_PORT=true needs Deno's flag --unstable-net/,
        / permissions .* \/elsewhere\/files/,
      ],
      [
        { DATABASE_URL: `postgres://u@127.0.0.1:1/db?${query}`, CONTENT: "/elsewhere/files" },
        / permissions .* \/elsewhere\/files and \/elsewhere\/a\.pem/,
      ],
      [
        { DATABASE_URL: "postgres://user:SECRET@127.0.0.1:1/db", ...bucket },
        /postgres: .* cannot be reached/,
        /bucket: .* cannot be reached/,
      ],
      // There is no catalogue yet.
      [bucket, /bucket: .* cannot be reached/],
      [{ CONTENT: `${folder}/file` }, /cannot read ".*\/file" \(CONTENT\) \(Not a directory/],
      [{ CONTENT: `${folder}/linked` }, /"\/.*\/linked\/lock" is a symbolic link, expected a file/],
    ];
    for (const [environment, ...reasons] of rows) {
      const { code, stdout, stderr } = await check(folder, environment);
      const found = reasons.map((reason) => stderr.split(reason).length - 1);
      assertEquals([code, ...found], [1, ...reasons.map(() => 1)], stderr);
      assert(!(stdout + stderr).includes("SECRET"));
    }
    assertEquals(filesIn(folder), before);
  }));

needing(...USERS)(
  "--check knows that root must not create content in another user's folder",
  () =>
    inFolder(async (folder) => {
      await Deno.mkdir(`${folder}/files`);
      await Deno.chown(`${folder}/files`, 65_534, 65_534);
      const reason =
        /cannot start: files: ".*" \(CONTENT\) belongs to the user with the id 65534, so/;
      const checked = await check(folder);
      assertMatch(checked.stderr, reason);
      assertEquals([checked.code, filesIn(folder)], [1, []]);
      assertMatch((await runMain([], folder)).stderr, reason);
      // Now there is a catalogue.
      assertMatch((await check(folder)).stderr, reason);
    }),
);

test("--version prints the version, and other arguments are wrong usage", () =>
  inFolder(async (folder) => {
    const { version } = JSON.parse(Deno.readTextFileSync("deno.json"));
    for (const args of [["--version"], ["media", "--version"]]) {
      const { code, stdout } = await runMain(args, folder);
      assertEquals([code, stdout], [0, `media-head ${version}\n`]);
    }
    for (const arg of ["--check", "--version"]) {
      const words = [Deno.execPath(), "run", ...taskFlags(MAIN, dirname(folder)), MAIN, arg];
      const env = { ...storageIn(folder), NO_COLOR: "1" };
      const failed = await runProgram("sh", ["-c", '"$@" > /dev/full', "sh", ...words], { env });
      assertEquals(failed.code, 1);
      assertMatch(failed.stderr, /^media-head: The output cannot be written \(.*\)\n$/);
    }
    for (const args of [["--chekc"], ["--check", "now"], ["serve"], ["\x1b[2J"]]) {
      const { code, stderr } = await runMain(args, folder);
      const got = args.join(" ").replace("\x1b", "\\u001b");
      const expected = 'expected no argument, --check, --version or "media"';
      assertEquals([code, stderr], [2, `media-head: ${expected}, got "${got}"\n`]);
    }
  }));
