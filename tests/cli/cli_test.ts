import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { stub } from "@std/testing/mock";
import { DatabaseSync } from "node:sqlite";
import { runMedia } from "../../lib/cli/media.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { entryOf } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { createHandler } from "../../main.ts";
import { linkedItem } from "../storage/media/media_storage_suite.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { plainHandler } from "../support/handlers.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder, media, mediaCommand, mediaHere, mediaInShell } from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { captureOutput } from "../support/output.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { LINUX, needing, program, shared, type Test } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";

const test = needing("processes");
const onPostgres = needing(...POSTGRES);
const postgres = shared(POSTGRES, () => PostgresServer.start());

const MP3_DIGEST = "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa";

test("media publish prints the token, and where clients reach the item", () =>
  inFolder(async (folder) => {
    const { code, stdout, stderr } = await media(folder, ["publish", SAMPLE_MP3], { PORT: "81" });
    const [first, ...lines] = stdout.trimEnd().split("\n");
    const token = /^Published audio ([0-9a-f-]{36})$/.exec(first ?? "")?.[1];
    assertEquals([code, stderr], [0, ""]);
    assertEquals(lines, [
      `  /media/${token}`, // a command cannot know the server's address
      `  /audio/${token}`,
      `  audio/mpeg, 26186 bytes, sha-256 ${MP3_DIGEST}`,
    ]);
    const environment = { PUBLIC_URL: "https://media.example.com/" };
    const again = await media(folder, ["publish", SAMPLE_MP3], environment);
    assertMatch(
      again.stdout,
      new RegExp(`\nTry: curl -I https://media.example.com/media/${token}\n$`),
    );
    const skipped = await media(folder, ["publish", SAMPLE_MP3, "--json"], environment);
    const paths = [`/media/${token}`, `/audio/${token}`];
    assertEquals(
      JSON.parse(skipped.stdout).urls,
      paths.map((path) => `https://media.example.com${path}`),
    );
  }));

test("media publish, show, list and unpublish agree, also with --json", () =>
  inFolder(async (folder) => {
    const token = newToken();
    const options = ["--token", token.toUpperCase(), "--name", 'für "dich" 🎧.mp4'];
    const published = await mediaHere(folder, [
      ...["publish", SAMPLE_MP4, "--json", "--language", "EN-gb", "--kind", "audio"],
      ...options,
    ]);
    const { source, outcome, urls, ...members } = JSON.parse(published.stdout);
    assertEquals([source, outcome], [SAMPLE_MP4, "published"]);
    assertEquals({ ...members, publishedAt: null }, {
      state: "published",
      token,
      kind: "audio",
      type: "audio/mp4",
      length: 46490,
      sha256: "9279cc24be9a5347e77d6c82b0722b33d6ec15ca57c870242783a79eae376613",
      name: 'für "dich" 🎧.mp4',
      language: "en-GB",
      publishedAt: null,
    });
    assertEquals(urls, [`/media/${token}`, `/audio/${token}`]);

    const listed = await mediaHere(folder, ["export"]);
    assertEquals(listed.stdout.trimEnd().split("\n").map((line) => JSON.parse(line)), [members]);
    const shown = JSON.parse((await mediaHere(folder, ["show", token, "--json"])).stdout);
    const { heads, faults, ...shownMembers } = shown;
    assertEquals([shownMembers, faults], [members, []]);
    assertEquals(
      heads.map(({ path, status }: { path: string; status: number }) => [path, status]),
      [
        [`/media/${token}`, 200],
        [`/audio/${token}`, 200],
      ],
    );
    assertEquals(heads[1].fields.link.split(",")[0], `</media/${token}>; rel="successor-version"`);

    const unpublished = await mediaHere(folder, ["unpublish", token]);
    assertEquals(
      [unpublished.code, unpublished.stdout],
      [0, `Unpublished ${token}; running servers answer 410 within 0.1 s\n`],
    );
    const again = await mediaHere(folder, ["unpublish", token, "--json"]);
    assertEquals([again.code, again.stdout], [1, ""]);
    assertEquals(again.stderr, `media: Token "${token}" is already unpublished\n`);
    const after = await mediaHere(folder, ["list"]);
    assertMatch(after.stdout, new RegExp(`^${token}  audio  unpublished  \\d{4}-.*Z\n$`));
    assertEquals(
      JSON.parse((await mediaHere(folder, ["show", token, "--json"])).stdout).heads[0].status,
      410,
    );
  }));

test("media publish, show, list and unpublish agree on an item at a URL", () =>
  inFolder(async (folder) => {
    const headers = { "Content-Type": "audio/mpeg", "Content-Length": "7", ETag: '"a"' };
    await using origin = new Origin(({ url }) =>
      new URL(url).pathname === "/a.mp3"
        ? new Response("content", { headers })
        : new Response(new Blob(["x"]).stream()) // without type or length
    );
    const location = origin.url("/a.mp3");
    const published = await mediaHere(folder, ["publish", location], {
      PUBLIC_URL: "http://a.test:81",
    });
    const [first, ...lines] = published.stdout.trimEnd().split("\n");
    const token = /^Published audio ([0-9a-f-]{36})$/.exec(first ?? "")?.[1] ?? "";
    assertEquals([published.code, published.stderr], [0, ""]);
    assertEquals(lines, [
      `  http://a.test:81/media/${token}`,
      `  http://a.test:81/audio/${token}`,
      "  audio/mpeg, 7 bytes",
      `  307 to ${location}`,
      `Try: curl -IL http://a.test:81/media/${token}`,
    ]);

    const listed = await mediaHere(folder, ["export"]);
    const { publishedAt, ...members } = JSON.parse(listed.stdout);
    assertEquals(members, {
      ...{ state: "published", token, kind: "audio", location, type: "audio/mpeg", length: 7 },
      validator: '"a"',
    });
    assertEquals(
      (await mediaHere(folder, ["list"])).stdout,
      `${token}  audio  published    ${publishedAt}             7  audio/mpeg  ${location}\n`,
    );
    const shown = JSON.parse((await mediaHere(folder, ["show", token, "--json"])).stdout);
    const { heads, faults, ...shownMembers } = shown;
    assertEquals([shownMembers, faults], [{ ...members, publishedAt }, []]);
    assertEquals(
      heads.map((
        { path, status, fields }: { path: string; status: number; fields: Fields },
      ) => [path, status, fields["location"], fields["link"]?.split(",")[0]]),
      [
        [`/media/${token}`, 307, location, undefined],
        [`/audio/${token}`, 307, location, `</media/${token}>; rel="successor-version"`],
      ],
    );
    assertMatch((await mediaHere(folder, ["show", token])).stdout, /\nlocation {6}http:.*\n/);
    assertEquals(origin.requests, ["HEAD /a.mp3", "GET /a.mp3"]);

    const bare = await mediaHere(folder, [
      "publish",
      origin.url("/b"),
      "--kind",
      "video",
      "--json",
    ]);
    const { source: _, outcome: __, urls, ...added } = JSON.parse(bare.stdout);
    assertEquals(Object.keys(added), ["state", "token", "kind", "location", "publishedAt"]);
    assertEquals(urls[1], `/video/${added.token}`);
    const line = (await mediaHere(folder, ["list"])).stdout.split("\n")
      .find((line) => line.startsWith(added.token));
    assertMatch(line ?? "", / {13}- {2}- {2}http:[^ ]*\/b$/);
  }));

type Fields = Readonly<Record<string, string>>;

test("media show prints exactly the fields that a HEAD returns", async () => {
  await using subject = await openLocal();
  const item = await subject.publish(newMetadata(), new TextEncoder().encode("content"));
  const { stdout } = await mediaHere(subject.folder, ["show", item.token], {
    DEPRECATED_AT: "2026-01-01",
    SUNSET_AT: "2100-01-01",
    DEPRECATION_DOC: "/deprecation",
    CACHE_MAX_AGE: "300",
  });
  const policy = definePolicy({
    deprecatedAt: "2026-01-01",
    sunsetAt: "2100-01-01",
    documentation: "/deprecation",
  });
  const handle = plainHandler({
    storage: subject.storage,
    config: { cacheMaxAge: 300, ...underPolicy(policy) },
    clock: Date.now,
    log() {},
  });
  for (const path of [`/media/${item.token}`, `/audio/${item.token}`]) {
    const { headers } = await handle(new Request(`http://test${path}`, { method: "HEAD" }));
    const fields = [...headers].map(([name, value]) => `${name}: ${value}\n`).join("");
    assert(stdout.includes(`\nHEAD ${path}\n200\n${fields}`), stdout);
  }
  await subject.damage(item, undefined);
  const damaged = await mediaHere(subject.folder, ["show", item.token]);
  assertMatch(damaged.stdout, new RegExp(`\n503\n[^]*content ${item.digest} is missing`));
});

test("media exits with 1 on refusal and 2 on wrong usage, naming the value", () =>
  inFolder(async (folder) => {
    const [text, empty] = [`${folder}/diary.mp3`, `${folder}/empty.mp3`];
    await Deno.writeTextFile(text, "Dear diary,\n");
    await Deno.writeTextFile(empty, "");
    const [taken, unknown] = [newToken(), newToken()];
    assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP3, "--token", taken])).code, 0);

    const refused: [args: string[], stderr: RegExp][] = [
      [["publish", `${folder}/nothing.mp3`], /^media: .*nothing\.mp3"\n$/],
      [
        ["publish", empty, text, "https://me:secret@h/"],
        new RegExp(
          '^refused +".*empty\\.mp3" is empty\n' +
            'refused +".*diary\\.mp3" .*--type\n' +
            'refused +"https://h/" was given with a',
        ),
      ],
      [
        ["publish", SAMPLE_MP3, "--token", taken],
        new RegExp(`^media: .*"${taken}"`),
      ],
      [["unpublish", unknown], new RegExp(`^media: Token "${unknown}" was never published\n$`)],
      [["show", unknown], new RegExp(`^media: Token "${unknown}" was never published\n$`)],
    ];
    const misused: [args: string[], stderr: RegExp][] = [
      [[], /Usage: media/],
      [["bogus"], /unknown command 'bogus'/],
      [["show", "x"], /Expected a version 4 UUID/],
      [["publish"], /missing required argument 'file\|folder\|url\|object'/],
      [["publish", SAMPLE_MP3, ""], /value '' is invalid.* Expected a file, folder, URL/],
      [["publish", SAMPLE_MP3, "--bogus"], /unknown option '--bogus'/],
      [
        ["publish", SAMPLE_MP3, "--kind", "image"],
        /'image' is invalid\. Allowed choices are audio, video/,
      ],
      [["publish", SAMPLE_MP3, "--type", "image/png"], /Expected an audio or video type/],
      [["publish", SAMPLE_MP3, "--name", "../x"], /Expected a file name/],
      [["publish", SAMPLE_MP3, "--language", "english"], /Expected a BCP 47 language tag/],
      [
        ["publish", SAMPLE_MP3, "--published-at", "2026-02-30"],
        /'2026-02-30' is invalid\. Expected a date and time with an offset, from 1970/,
      ],
      [
        ["publish", SAMPLE_MP3, "--published-at", "2999-01-01"],
        /'2999-01-01' is invalid\. Expected .* to now/,
      ],
      [["publish", "http://127.0.0.1:9/", "--name", "x"], /'--name' cannot be used with a URL/],
      [["publish", SAMPLE_MP3, "http://127.0.0.1:9/", "--language", "en"], /with a URL/],
      [
        ["publish", SAMPLE_MP3, SAMPLE_MP4, "--token", unknown],
        /'--token' is for one file, URL or object/,
      ],
      [["publish", folder, "--name", "x"], /'--name' is for one file, URL or object/],
    ];
    for (const [args, stderr] of refused) {
      const result = await mediaHere(folder, args);
      assertEquals(result.code, 1, `${args}: ${result.stderr}`);
      assertMatch(result.stderr, stderr);
    }
    for (const [args, stderr] of misused) {
      using printed = stub(console, "error");
      assertEquals(await runMedia(args, { routes: ROUTES, createHandler }), 2);
      assertMatch(printed.calls.map((call) => call.args[0]).join("\n"), stderr);
    }
    const misconfigured = await mediaHere(folder, ["list"], { PORT: "x" });
    assertEquals([misconfigured.code, misconfigured.stdout], [2, ""]);
    assertMatch(misconfigured.stderr, /^PORT: expected .*, got "x"\n$/);
    const help = await media(folder, ["publish", "--help"]);
    assertEquals([help.code, help.stderr], [0, ""]);
    assertMatch(help.stdout, /--language <tag>/);
    const listed = await mediaHere(folder, ["export"]);
    assertEquals(listed.stdout.trimEnd().split("\n").length, 1); // none of these left a trace
  }));

needing("processes", LINUX, program("sh"))(
  "media reports in one line that its output cannot be written",
  () =>
    inFolder(async (folder) => {
      assertEquals(
        (await mediaHere(folder, ["publish", SAMPLE_MP3, "--type", "AUDIO/X-Mpeg"])).code,
        0,
      );
      for (const args of [["list"], ["--help"], ["publish", "--help"]]) {
        const { code, stderr } = await mediaInShell(folder, '"$0" "$@" >/dev/full', args);
        assertEquals(code, 1, args.join(" "));
        assertMatch(
          stderr,
          /^media: The output cannot be written \(No space left on device[^\n]*\)\n$/,
        );
      }
      assertMatch((await mediaHere(folder, ["list"])).stdout, / audio\/x-mpeg /);
    }),
);

test("media and each command report that their help cannot be written", async () => {
  using _stdout = captureOutput(() => {
    throw new Error("full");
  });
  for (const command of ["", "publish", "unpublish", "verify", "import", ...READING]) {
    using printed = stub(console, "error");
    const args = [command, "--help"].filter((word) => word !== "");
    assertEquals(await runMedia(args, { routes: ROUTES, createHandler }), 1, command);
    assertEquals(printed.calls.map((call) => call.args[0]), [
      "media: The output cannot be written (full)",
    ]);
  }
});

test("media list exits quietly when its reader closes the pipe", async () => {
  await using subject = await openLocal();
  const items = Array.from({ length: 1_500 }, () => linkedItem());
  await subject.storage.catalogue.addAll(items.map((item) => [item.token, entryOf(item)]));
  const child = mediaCommand(subject.folder, ["list"]).spawn();
  const reader = child.stdout.getReader();
  assert(!(await reader.read()).done);
  await reader.cancel();
  const { code } = await child.status;
  assertEquals([code, await new Response(child.stderr).text()], [0, ""]);
});

const READING = ["list", "export", "verify", "usage", "show", "unpublish", "import"];

/** Each engine, with a function that returns the URL of a database without a catalogue. */
const EMPTY: [name: string, register: Test, urlIn: (folder: string) => Promise<string>][] = [
  ["SQLite", test, (folder) => Promise.resolve(`sqlite:${folder}/no/such.sqlite`)],
  ["PostgreSQL", onPostgres, async () => postgres().urlOf(await postgres().createDatabase())],
];

for (const [name, register, urlIn] of EMPTY) {
  register(
    `media creates no catalogue on ${name} but to publish, and no ledger, and says so`,
    () =>
      inFolder(async (folder) => {
        const url = await urlIn(folder);
        const shown = url.replace(/^sqlite:|\w+:[\w-]+@/, "");
        const rest: Record<string, string[]> = {
          show: [newToken()],
          unpublish: [newToken()],
          import: ["--dry-run", "/dev/null"],
        };
        // Whether a command creates one does not depend on the engine.
        for (const command of name === "SQLite" ? READING : ["list"]) {
          const args = [command, ...rest[command] ?? []];
          const run = command === "import" ? media : mediaHere; // it leaves its input open
          const { code, stdout, stderr } = await run(folder, args, { DATABASE_URL: url });
          assertEquals([code, stdout !== ""], [1, command === "import"], command);
          assertStringIncludes(
            stderr,
            `"${shown}" (DATABASE_URL) cannot be opened (It does not exist yet; start the server ` +
              "to create it, or name yours with DATABASE_URL)",
          );
        }
        assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
        for (const isFirst of [true, false]) {
          const args = ["publish", SAMPLE_MP3, "--again"];
          const { stderr } = await mediaCommand(folder, args, { DATABASE_URL: url }).output();
          assertEquals(
            new TextDecoder().decode(stderr).includes(`media: created the catalogue`) &&
              new TextDecoder().decode(stderr).includes(`"${shown}" (DATABASE_URL)\n`),
            isFirst,
          );
        }
        // No server has created a ledger yet.
        const here = (...args: string[]) => mediaHere(folder, args, { DATABASE_URL: url });
        const [token = ""] = (await here("list")).stdout.split(" ");
        assertEquals((await here("show", token)).code, 0);
        for (const [status, ...args] of [[1, "usage"], [3, "usage", "--gate"], [1, "hold"]]) {
          const { code, stderr } = await here(...args as string[]);
          assertMatch(
            stderr,
            /^media: \w+: the ledger .* cannot be opened \(It does not exist yet; start the server /,
          );
          assertEquals(code, status);
        }
      }),
  );
}

test("media refuses an empty file as a catalogue to read, and leaves it empty", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/catalogue.sqlite`, "");
    const { code, stderr } = await mediaHere(folder, ["list"]);
    assertEquals(code, 1);
    assertMatch(stderr, /catalogue\.sqlite" \(DATABASE_URL\) cannot be opened/);
    assertEquals((await Deno.stat(`${folder}/catalogue.sqlite`)).size, 0);
  }));

test("media says what it waits for, and ends at once on Ctrl-C", () =>
  inFolder(async (folder) => {
    assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP3])).code, 0);
    assert((await new Deno.Command("mkfifo", { args: [`${folder}/fifo`] }).output()).success);
    /** Interrupts a command once it says what it waits for. */
    const interrupt = async (args: string[], waiting: RegExp) => {
      const child = mediaCommand(folder, args).spawn();
      const stdout = child.stdout.cancel();
      const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
      assertMatch((await reader.read()).value ?? "", waiting);
      child.kill("SIGINT");
      let rest = "";
      for (let read; !(read = await reader.read()).done;) rest += read.value;
      assertEquals([(await child.status).code, await stdout], [130, undefined]);
      return rest;
    };
    using lock = await Deno.open(`${folder}/files/lock`);
    await lock.lock(true);
    assertMatch(
      await interrupt(
        ["publish", SAMPLE_MP4, `${folder}/fifo`],
        /^media: waiting for the lock of ".*\/files" \(CONTENT\), .*\n$/,
      ),
      /^Published 0, skipped 0 .*\nmedia: stopped by SIGINT\n$/,
    );
    await lock.unlock();
    const stopped = "media: stopped by SIGINT\n";
    const pipe = /^media: waiting for ".*\/fifo"\n$/;
    assertEquals(await interrupt(["import", `${folder}/fifo`], pipe), stopped);
    using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = silent.addr as Deno.NetAddr;
    const url = `http://127.0.0.1:${port}/a.mp3`;
    const host = new RegExp(`^media: waiting for 127.0.0.1:${port}\n$`);
    assertMatch(await interrupt(["publish", url], host), /\bmedia: stopped by SIGINT\n$/);
    using database = new DatabaseSync(`${folder}/catalogue.sqlite`);
    database.exec("BEGIN IMMEDIATE");
    const locked = /^media: waiting for the catalogue \(DATABASE_URL\), which another/;
    assertEquals(await interrupt(["publish", SAMPLE_MP4], locked), stopped);
  }));
