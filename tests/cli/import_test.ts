import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { openLedgerIn } from "../support/local_storage.ts";
import {
  inFolder,
  makeCatalogue,
  media,
  mediaCommand,
  mediaHere,
  mediaTask,
  onTerminal,
  operatorEnvironment,
  result,
  taskArguments,
} from "../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { LINUX, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { iso } from "../publishing/containers.ts";
import { wav } from "../support/wav.ts";

const test = needing("processes");
const onPostgres = needing(...POSTGRES);
const postgres = shared(POSTGRES, () => PostgresServer.start());

const MP3 = {
  sha256: "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa",
  length: 26186,
  type: "audio/mpeg",
};

type Environment = Record<string, string>;

const toLines = (objects: readonly object[]) =>
  objects.map((object) => `${JSON.stringify(object)}\n`).join("");

/** Makes JSON objects to import, of every sort, whose content is in storage, or elsewhere. */
function objectsOf(count: number): object[] {
  return Array.from({ length: count }, (_, index) => {
    const token = newToken();
    if (index % 10 === 0) {
      return { token, state: "unpublished", kind: "video", unpublishedAt: "2026-11-22" };
    }
    const published = { token, publishedAt: `2026-11-21T00:00:00.${100 + index % 900}Z` };
    return index % 2 === 0
      ? { ...published, ...MP3, name: `ü "${index}".mp3`, language: "en-GB" }
      : { ...published, kind: "video", location: `https://h/${index}`, validator: 'W/"x"' };
  });
}

/** Writes lines to `in` in a folder, and imports that file. */
async function importing(folder: string, input: string | readonly object[], ...args: string[]) {
  const text = typeof input === "string" ? input : toLines(input);
  await Deno.writeTextFile(`${folder}/in`, text);
  return await mediaHere(folder, ["import", `${folder}/in`, ...args]);
}

/** Makes objects to import that need no content in storage. */
const linksOf = (count: number) => objectsOf(count).filter((object) => !("sha256" in object));

const namesIn = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();

/** Exports a catalogue. */
async function exported(folder: string, environment: Environment = {}): Promise<string> {
  const { code, stdout, stderr } = await mediaHere(folder, ["export"], environment);
  assertEquals([code, stderr], [0, ""]);
  return stdout;
}

test("media import adds valid lines, refuses the rest, and running servers see it at once", () =>
  inFolder(async (folder) => {
    await using server = await ServerProcess.start({}, folder);
    const [file, url, gone] = [newToken(), newToken(), newToken()];
    const head = async (token: string) =>
      (await requestRaw(server.port, "HEAD", `/media/${token}`)).status;

    const bad = ['{"kind": "radio", "location": "https://h/b"}\r\n', "nonsense\n"];
    const lines = toLines([
      { path: SAMPLE_MP4, token: file, language: "en-GB" },
      { location: "https://h/a", kind: "audio", token: url },
      { token: gone, state: "unpublished", kind: "audio" },
    ]) + bad.join("");
    const text = lines.trimEnd(); // rejects end with a newline all the same
    const rejects = `${folder}/rejects`;
    await Deno.writeTextFile(
      rejects,
      "of an earlier run, and longer than what comes now".repeat(9),
    );
    const dry = await importing(folder, text, "--dry-run");
    assertEquals(dry.stdout, "Dry run. Would be added: 3; unchanged: 0; refused: 2\n");
    assertEquals([dry.code, await exported(folder)], [1, ""]);
    assertEquals([await head(file), await head(url)], [404, 404]);
    const first = await importing(folder, text, "--rejects", rejects);
    assertEquals(first.code, 1);
    assertEquals(first.stdout, "Added: 3; unchanged: 0; refused: 2\n");
    assertMatch(
      first.stderr,
      /^media: line 4: "kind" is "radio"; .*\nmedia: line 5: "nonsense" .*\n$/,
    );
    const reasons = first.stderr.trim().split("\n").map((line) => line.replace(/^.*?: .*?: /, ""));
    assertEquals(await Deno.readTextFile(rejects), bad.join(""));
    await new Promise((resolve) => setTimeout(resolve, 100)); // until the server sees it
    assertEquals([await head(file), await head(url), await head(gone)], [200, 307, 410]);

    const again = await importing(folder, text, "--rejects", rejects, "--json");
    assertEquals(again.code, 1);
    const counts = { added: 0, unchanged: 3, refused: 2, unpublished: 0, renewed: 0 };
    assertEquals(again.stdout.trim().split("\n").map((line) => JSON.parse(line)), [
      { line: 4, outcome: "refused", reason: reasons[0] },
      { line: 5, outcome: "refused", reason: reasons[1] },
      { ...counts, dryRun: false, complete: true },
    ]);
    assertEquals(await Deno.readTextFile(rejects), bad.join(""));
  }));

test("media import refuses unusable files, does not change them, and creates nothing", () =>
  inFolder(async (folder) => {
    const [input, array] = [`${folder}/in`, `${folder}/array`];
    await Deno.writeTextFile(input, toLines([{ path: SAMPLE_MP3 }]));
    await Deno.writeTextFile(array, '[\n{"location":"https://h/a","kind":"audio"}\n]\n');
    await Deno.link(input, `${folder}/link`);
    const rows: [args: string[], message: RegExp][] = [
      [[`${folder}/none`], /^media: [^\n]*\/none"\n$/],
      [[folder], /^media: ".*" is a folder, not a file\n$/],
      [[array], /^media: Line 1 is "\["; [^\n]*\n$/],
      [[input, "--rejects", `${folder}/link`], /is the file being imported; give another/],
      [[input, "--rejects", `${folder}/no/such`], /^media: ".*\/no\/such" cannot be written \(/],
    ];
    for (const [args, message] of rows) {
      const { code, stdout, stderr } = await media(folder, ["import", ...args]);
      assertEquals([code, stdout], [1, ""]);
      assertMatch(stderr, message);
      if (args.length === 1) assertEquals(namesIn(folder), ["array", "in", "link"]);
    }
    assertEquals(await Deno.readTextFile(input), toLines([{ path: SAMPLE_MP3 }]));
  }));

test("media refuses the files of storage as input and output, by whatever name", () =>
  inFolder(async (folder) => {
    assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP3])).code, 0);
    const [catalogue, stored] = [`${folder}/catalogue.sqlite`, `${folder}/files/bc/${MP3.sha256}`];
    const paths = [catalogue, `${catalogue}-ledger`, stored];
    const [input, rejects] = [`${folder}/in`, `${folder}/rejects`];
    const lines = paths.map((path) => ({ path, type: "audio/mpeg" }));
    const refused = await importing(folder, lines, "--json", "--rejects", rejects);
    for (const [index, line] of refused.stdout.split("\n").slice(0, 3).entries()) {
      assertEquals(
        JSON.parse(line).reason,
        `"${paths[index]}" is part of storage (DATABASE_URL, CONTENT)`,
      );
    }
    assertEquals(await Deno.readTextFile(rejects), await Deno.readTextFile(input));
    const [link, hardLink] = [`${folder}/link`, `${folder}/hard-link`];
    await Deno.symlink(`${folder}/files/lock`, link);
    await Deno.link(catalogue, hardLink);
    const { stderr } = await mediaHere(folder, [
      "publish",
      ...paths,
      hardLink,
      "--type",
      "audio/mpeg",
    ]);
    assertMatch(stderr, /^(refused .* is part of storage .*\n){4}$/);
    const rows = [
      ["usage", "--html", `${folder}/files/new`],
      ["import", input, "--rejects", `${catalogue}-ledger-journal`], // not there
      ["import", input, "--rejects", link],
      ["import", hardLink],
    ];
    await (await openLedgerIn(folder)).close(); // as a server does
    const storage = () => Promise.all([...paths, link].map((path) => Deno.readFile(path)));
    const before = await storage();
    for (const args of rows) {
      const { code, stderr } = await media(folder, args);
      const reason = `media: "${args.at(-1)}" is part of storage (DATABASE_URL, CONTENT)\n`;
      assertEquals([code, stderr], [1, reason], args.join(" "));
    }
    assertEquals(await storage(), before);
    for await (const { name } of Deno.readDir(`${folder}/files`)) assert(name !== "new");
  }));

test("media import reports what it has done when it is stopped while it waits for input", () =>
  inFolder(async (folder) => {
    const objects = linksOf(1_000);
    const count = objects.length;
    await makeCatalogue(folder);
    const [rejects, link] = [`${folder}/rejects`, `${folder}/link`];
    await Deno.writeTextFile(rejects, "of an earlier run", { mode: 0o600 });
    await Deno.symlink(rejects, link);
    const args = ["import", "-", "--rejects", link];
    const child = mediaCommand(folder, args, {}, "piped").spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode("nonsense\n" + toLines(objects)));
    for (let tries = 0; (await exported(folder)).split("\n").length <= count; tries++) {
      assert(tries < 100, "slow input delays the lines before it");
    }
    assertEquals(await Deno.readTextFile(rejects), "of an earlier run");
    child.kill("SIGINT");
    const [{ code }, stdout, stderr] = await Promise.all([
      child.status,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    await writer.close().catch(() => {}); // the reader is gone
    assertEquals(code, 130);
    assertEquals(
      stdout,
      `Added: ${count}; unchanged: 0; refused: 1; stopped before the end: import again` +
        " to continue\n",
    );
    assertMatch(stderr, /^media: line 1: "nonsense" .*\nmedia: stopped by SIGINT\n$/);
    const { mode } = await Deno.lstat(rejects);
    assertEquals([await Deno.readTextFile(link), mode], ["nonsense\n", 0o100600]);
    assertEquals(namesIn(folder).filter((name) => name.startsWith(".")), [], "a draft is left");
  }));

test("media import says which line is too long, and what to do", () =>
  inFolder(async (folder) => {
    const lines = toLines(linksOf(30));
    const count = lines.split("\n").length - 1;
    const text = `${lines}{"name":"${"x".repeat(70_000)}"}\n${lines}`;
    const { code, stdout, stderr } = await importing(folder, text, "--json");
    const { added, complete } = JSON.parse(stdout);
    assertEquals([code, added, complete], [1, count, false]);
    const line = count + 1;
    assertMatch(stderr, new RegExp(`^media: Line ${line} is .*\\. Correct line ${line} first\n$`));
  }));

test("media import that is killed leaves its rejects under a name that says what they are", () =>
  inFolder(async (folder) => {
    await makeCatalogue(folder);
    const rejects = `${folder}/rejects`;
    await Deno.writeTextFile(rejects, "of an earlier run");
    const args = ["import", "-", "--rejects", rejects];
    const child = mediaCommand(folder, args, {}, "piped").spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode("{}\n"));
    const reader = child.stderr.getReader();
    await reader.read(); // once the line is refused
    child.kill("SIGKILL");
    await Promise.all([child.status, child.stdout.cancel(), reader.cancel()]);
    await writer.close().catch(() => {}); // the reader is gone
    assertEquals(await Deno.readTextFile(rejects), "of an earlier run");
    const [left = "", ...others] = namesIn(folder).filter((name) => name.startsWith("."));
    assertMatch(left, /^\.unfinished-[0-9a-f-]{36}$/);
    assertEquals([others, await Deno.readTextFile(`${folder}/${left}`)], [[], "{}\n"]);
  }));

/** What LibreOffice 7.4 wrote: with `;`, a row that is empty, a name of two lines, and no quotes. */
const SHEET = `token;path;length;language;publishedAt;location;kind
8C34B2D6-6A35-4E0B-9D61-2F0B7C1A9E10;"Folge 1; ""Anfang"".mp3";26186;de-DE;2024-03-01;;
;;;;;;
8c34b2d6-6a35-4e0b-9d61-2f0b7c1a9e11;"zwei
Zeilen, ü.mp3";;;;;audio
8c34b2d6-6a35-4e0b-9d61-2f0b7c1a9e12;;1048576;;2024-03-02;https://cdn.example.com/b.mp4;video
`;

test("media import reads a spreadsheet's CSV whole, as it reads the same in JSON", () =>
  inFolder(async (folder) => {
    const token = (last: number) => `8c34b2d6-6a35-4e0b-9d61-2f0b7c1a9e1${last}`;
    const names = ['Folge 1; "Anfang".mp3', "zwei\nZeilen, ü.mp3"];
    for (const name of names) await Deno.copyFile(SAMPLE_MP3, `${folder}/${name}`);
    const file = `${folder}/sheet.csv`;
    await Deno.writeTextFile(file, SHEET);
    const run = (args: string[]) => mediaTask(folder, folder, args, ["--quiet"]);
    const dry = await run(["import", "sheet.csv", "--dry-run"]);
    assertEquals([dry.code, dry.stdout], [
      1,
      "Dry run. Would be added: 3; unchanged: 0; refused: 0\n",
    ]);
    assertMatch(dry.stderr, /^media: .* \(DATABASE_URL\) cannot be opened .*\n$/);
    await Deno.writeTextFile(`${folder}/wrong.csv`, `${SHEET};no/such.mp3;;;;;\n`);
    const wrong = await run(["import", "wrong.csv", "--dry-run"]);
    assertEquals([wrong.code, wrong.stdout], [
      1,
      "Dry run. Would be added: 3; unchanged: 0; refused: 1\n",
    ]);
    assertMatch(
      wrong.stderr,
      /^media: line 7: "token" is ""; .*\nmedia: .* cannot be opened .*\n$/,
    );
    assertEquals(namesIn(folder), [...names, "sheet.csv", "wrong.csv"].toSorted());
    await makeCatalogue(folder);
    for (
      const [args, stdout] of [
        [["--dry-run"], "Dry run. Would be added: 3; unchanged: 0; refused: 0\n"],
        [[], "Added: 3; unchanged: 0; refused: 0\n"],
        [[], "Added: 0; unchanged: 3; refused: 0\n"],
      ] as const
    ) {
      assertEquals(await run(["import", "sheet.csv", ...args]), { code: 0, stdout, stderr: "" });
    }
    const found = (await exported(folder)).trim().split("\n").map((line) => JSON.parse(line));
    assertEquals(found.map(({ sha256: _, ...object }) => object), [
      {
        ...{ state: "published", token: token(0), kind: "audio", type: MP3.type },
        ...{ length: MP3.length, name: names[0], language: "de-DE" },
        publishedAt: "2024-03-01T00:00:00.000Z",
      },
      {
        ...{ state: "published", token: token(1), kind: "audio", type: MP3.type },
        ...{ length: MP3.length, name: "zwei_Zeilen, ü.mp3", publishedAt: found[1].publishedAt },
      },
      {
        ...{ state: "published", location: "https://cdn.example.com/b.mp4", length: 1048576 },
        ...{ token: token(2), kind: "video", publishedAt: "2024-03-02T00:00:00.000Z" },
      },
    ]);
  }));

test("media import writes refused rows of CSV so that they import again once corrected", () =>
  inFolder(async (folder) => {
    await makeCatalogue(folder);
    const rejects = `${folder}/rejects.csv`;
    const header = "\ufeffsep=;\r\nlocation;kind;publishedAt\r\n";
    const bad = ['"https://h/\n2";audio;\r\n', "https://h/4;audio;03/02/2024"];
    const text = `${header}https://h/1;audio;\r\n${bad[0]}https://h/3;video;2024-03-02\r\n${
      bad[1]
    }`;
    const dry = await importing(folder, text, "--dry-run", "--json");
    const outcomes = dry.stdout.trim().split("\n").map((line) => JSON.parse(line));
    assertEquals(outcomes.map(({ line, lastLine }) => [line, lastLine]).slice(0, 2), [
      [4, 5],
      [7, undefined],
    ]);
    const first = await importing(folder, text, "--rejects", rejects);
    assertEquals([first.code, first.stdout], [1, "Added: 2; unchanged: 0; refused: 2\n"]);
    assertMatch(
      first.stderr,
      /^media: lines 4 to 5: "https:\/\/h\/\\n2" .*\nmedia: line 7: "publishedAt" is "03\/02\/2024"; .*\n$/,
    );
    const written = await Deno.readTextFile(rejects);
    assertEquals(written, `${header}${bad[0]}${bad[1]}\n`);
    const corrected = written.replace("\n2", "2").replace("03/02/2024", "2024-03-02");
    const second = await importing(folder, corrected, "--rejects", rejects);
    assertEquals(second, { code: 0, stdout: "Added: 2; unchanged: 0; refused: 0\n", stderr: "" });
    assertEquals(await Deno.readTextFile(rejects), "");
  }));

test("media import writes refused lines to standard output for -, and all else elsewhere", () =>
  inFolder(async (folder) => {
    await makeCatalogue(folder);
    const file = `${folder}/-`; // named like standard output
    const header = "\ufeffsep=;\r\nlocation;kind\r\n";
    const bad = ["https://h/\u200f;radio\r\n", "https://h/2;radio"];
    const text = `${header}${bad[0]}https://h/1;audio\r\n${bad[1]}`;
    await Deno.writeTextFile(file, text);
    const task = new Deno.Command(Deno.execPath(), {
      args: taskArguments(["import", "./-", "--rejects", "-"], ["--quiet"]),
      cwd: folder,
      ...operatorEnvironment(folder),
      stdin: "null",
    });
    const { code, stdout, stderr } = await task.output();
    const written = new TextDecoder("utf-8", { ignoreBOM: true }).decode(stdout);
    assertEquals([code, written], [1, `${header}${bad[0]}${bad[1]}\n`]);
    assertMatch(
      new TextDecoder().decode(stderr),
      /^media: line 3: .*\nmedia: line 5: .*\nAdded: 1; unchanged: 0; refused: 2\n$/,
    );
    assertEquals(await Deno.readTextFile(file), text);
    await Deno.remove(file);
    const json = await importing(folder, text, "--rejects", "-", "--json");
    assertEquals([json.code, json.stdout], [2, ""]);
    assertMatch(json.stderr, /^error: option '--rejects -' cannot be used with option '--json'\n/);
    assertThrows(() => Deno.statSync(file), Deno.errors.NotFound);
  }));

test("media import takes what tools write for a missing value as none, and the rest from its rejects", () =>
  inFolder(async (folder) => {
    await makeCatalogue(folder);
    const rejects = `${folder}/rejects.csv`;
    const [token, other] = [newToken(), newToken()];
    const header = "token,location,kind,length\n";
    const bad = [`${other},https://h/a,NA,NaN\n`, "NULL,https://h/a,audio,\n"];
    const text = `${header}${token},https://h/a,audio,NA\n${bad.join("")}`;
    const first = await importing(folder, text, "--rejects", rejects);
    assertEquals(first.stdout, "Added: 1; unchanged: 0; refused: 2\n");
    const [third = "", fourth = ""] = first.stderr.split("\n");
    assertStringIncludes(third, '"kind" is "NA", ');
    assertStringIncludes(fourth, 'media: line 4: "token" is "NULL"; ');
    const written = await Deno.readTextFile(rejects);
    assertEquals(written, header + bad.join(""));
    const kindly = written.replace(",NA,", ",video,");
    const second = await importing(folder, kindly, "--derive-tokens");
    assertEquals(second, { code: 0, stdout: "Added: 2; unchanged: 0; refused: 0\n", stderr: "" });
    const again = await importing(folder, kindly); // needs the option again
    assertEquals([again.code, again.stdout], [1, "Added: 0; unchanged: 1; refused: 1\n"]);
  }));

test("media import refuses what it cannot detect by the name of a member, not of an option", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a.mp3`, "no sound");
    await Deno.writeFile(`${folder}/b.mp4`, iso("isom"));
    await Deno.writeTextFile(`${folder}/in`, toLines([{ path: "a.mp3" }, { path: "b.mp4" }]));
    const { stderr } = await mediaTask(folder, folder, ["import", "in"], ["--quiet"]);
    assertMatch(stderr, /a.mp3" .* as "type"\n/);
    assertMatch(stderr, /b.mp4" .* as "kind"\n/);
  }));

test("media import prints twenty refusals of each kind, and counts the others", () =>
  inFolder(async (folder) => {
    const files = Array.from({ length: 25 }, (_, index) => ({ path: `/none/"a" ${index}.mp3` }));
    const urls = Array.from({ length: 3 }, () => ({ location: "https://h/a", kind: "radio" }));
    const last = { path: "/none/b.mp3", language: "english!" };
    const rejects = `${folder}/rejects`;
    const text = toLines([...files, ...urls, last]);
    const { stdout, stderr } = await importing(folder, text, "--rejects", rejects);
    assertEquals(stdout, "Added: 0; unchanged: 0; refused: 29\n");
    const refused = stderr.trimEnd().split("\n");
    assertEquals(
      refused.pop(),
      "media: 5 more lines refused like line 20; --rejects and --json have all of them",
    );
    const expected = [
      ...files.slice(0, 20).map(({ path }, index) => `${index + 1}: "${path}"`),
      ...[26, 27, 28].map((line) => `${line}: "kind" is "radio"`),
      '29: "language" is "english!"',
    ];
    const shown = refused.map((line) =>
      line.replace(/^media: line (\d+): [^"]*/, "$1: ").replace(/;.*/, "")
    );
    assertEquals(shown, expected);
    assertEquals(await Deno.readTextFile(rejects), text);
    const json = await importing(folder, text, "--json");
    assertEquals([json.stdout.split("\n").length, json.stderr], [31, ""]);
  }));

test("media import counts refusals by what is wrong, whatever the values are", () =>
  inFolder(async (folder) => {
    type Row = [what: string, line: (index: number) => string, header?: string];
    const rows: Row[] = [
      ["too many values", (index) => `a.mp3,${"x,".repeat(index + 1)}x`, "path"],
      ["a value", (index) => JSON.stringify({ ...MP3, language: `no ${wordOf(index)}!` })],
      ["a value like a sentence", (index) => `{"path":"a","kind":"is \\"${wordOf(index)} or\\""}`],
      ["a name", (index) => JSON.stringify({ ...MP3, [wordOf(index)]: 1 })],
      ["a name twice", (index) => `{"${wordOf(index)}":1,"${wordOf(index)}":2}`],
      ["no object", (index) => `"${wordOf(index)}"`, '{"path":"/none"}'],
      [
        "a URL",
        (index) => JSON.stringify({ location: `https://${wordOf(index)}:x/`, kind: "audio" }),
      ],
      ["a folder", (index) => JSON.stringify({ path: `/${"./".repeat(index)}` })],
    ];
    for (const [what, line, header] of rows) {
      const lines = Array.from({ length: 25 }, (_, index) => `${line(index)}\n`).join("");
      const text = header === undefined ? lines : `${header}\n${lines}`;
      const { stdout, stderr } = await importing(folder, text);
      assertMatch(stdout, /; refused: 2[56]\n$/, what);
      assertMatch(stderr, /\nmedia: 5 more lines refused like line \d+; [^\n]+\n$/, what);
      const shown = stderr.split("\n").filter((text) => text.startsWith("media: line "));
      assertEquals(shown.length - Number(header?.startsWith("{") ?? false), 20, what);
    }
  }));

/** Returns a word of letters alone. */
function wordOf(index: number): string {
  return `w${String.fromCharCode(97 + index)}`;
}

test("media import of a catalogue whose content was not copied states that once", () =>
  inFolder(async (folder) => {
    const contents = Array.from({ length: 3_000 }, (_, index) => ({
      ...{ token: newToken(), sha256: index.toString(16).padStart(64, "0") },
      ...{ length: 5, type: "audio/mpeg" },
    }));
    const none = await importing(folder, [...contents, { path: "/none" }]);
    assertEquals(none.stdout, "Added: 0; unchanged: 0; refused: 3,001\n");
    const [line = "", ...summary] = none.stderr.split("\n");
    assertMatch(line, /^media: line 3001: .*"\/none"$/);
    assertEquals(summary, [
      `media: none of the content of 3,000 lines is in ${folder}/files: ` +
      "copy the content there first, or correct CONTENT",
      "",
    ]);
    assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP3])).code, 0);
    const some = await importing(folder, [...contents, MP3]);
    assertEquals(some.stdout, "Added: 1; unchanged: 0; refused: 3,000\n");
    const lines = some.stderr.trimEnd().split("\n");
    assertEquals(lines.length, 21);
    assertMatch(lines[0] ?? "", /^media: line 1: content: content 0{64} is missing$/);
    assertMatch(lines[20] ?? "", /^media: 2,980 more lines refused like line 20; --rejects and/);
  }));

needing("processes", LINUX, program("bash"), program("jq"))(
  "the recipes for tokens work in the folder of the files, whatever the names",
  () =>
    inFolder(async (folder) => {
      const page = await Deno.readTextFile(fromRoot("lib/publishing/README.md"));
      const section = page.slice(
        page.indexOf("## Import and export"),
        page.indexOf("### Tokens of"),
      );
      const [csv = "", byCsv = "", byName = ""] = [...section.matchAll(/^```\w+\n(.*?)^```/gms)]
        .map(([, text]) => text);
      const named = "07681929-e67a-49b0-88b6-4c379cb0e07d"; // the first in any locale
      const names = [/"(.*)",en/.exec(csv)?.[1]?.replaceAll('""', '"') ?? "", `${named}.mp3`];
      const awkward = `it's a $(b) "c" \\d.mp3`;
      await Deno.mkdir(`${folder}/files here`);
      for (const name of [...names, awkward]) {
        await Deno.copyFile(SAMPLE_MP3, `${folder}/files here/${name}`);
      }
      await Deno.writeTextFile(`${folder}/files here/tokens.csv`, csv);
      await Deno.mkdir(`${folder}/bin`);
      await Deno.symlink(Deno.execPath(), `${folder}/bin/deno`);
      const { env, clearEnv } = operatorEnvironment(folder);
      const run = async (recipe: string) => {
        const command = `deno task --quiet --cwd '${fromRoot(".")}' media "$@"`;
        return await result(
          runProgram("bash", ["-c", `media-head() { ${command}; }\n${recipe}`], {
            cwd: `${folder}/files here`,
            env: { ...env, PATH: `${folder}/bin:${env?.["PATH"]}` },
            ...clearEnv === undefined ? {} : { clearEnv },
          }),
        );
      };
      const added = "Added: 1; unchanged: 0; refused: 0\n";
      assertEquals(await run(byCsv), { code: 0, stdout: "", stderr: added });
      const second = await run(byName);
      assertEquals([second.code, second.stdout], [1, "Added: 1; unchanged: 0; refused: 2\n"]);
      assertEquals(second.stderr.replaceAll(/;.*/g, "").trim().split("\n"), [
        `media: line 2: "token" is "Episode 12, "The end""`,
        `media: line 3: "token" is "it's a $(b) "c" \\d"`,
      ]);
      const items = (await exported(folder)).trim().split("\n").map((line) => JSON.parse(line));
      assertEquals(
        new Map(items.map(({ token, name }) => [token, name])),
        new Map([[csv.split(/[\n,]/)[4], names[0]], [named, names[1]]]),
      );
    }),
);

needing("processes", LINUX, program("script"))(
  "media import shows on a terminal which part of the file is done",
  () =>
    inFolder(async (folder) => {
      await makeCatalogue(folder);
      await Deno.writeFile(`${folder}/b.wav`, wav(0, 2_000));
      await mediaHere(folder, ["publish", SAMPLE_MP3]); // creates the lock of the folder
      const objects = [...linksOf(2), { path: `${folder}/b.wav` }, ...linksOf(40)];
      await Deno.writeTextFile(`${folder}/in`, toLines(objects));
      const lock = await Deno.open(`${folder}/files/lock`);
      await lock.lock(true); // so that the import takes longer than a short task, which shows nothing
      const child = onTerminal(folder, ["import", `${folder}/in`]).spawn();
      let shown = "";
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        shown += text;
        if (/waiting for the lock/.test(text)) lock.close();
      }
      await child.status;
      assertMatch(shown, /\[\?7l\d\d?% \| \d+ lines\W/);
    }),
);

onPostgres(
  "media export prints the same from SQLite, PostgreSQL and SQLite again",
  () =>
    inFolder(async (folder) => {
      for (const path of [SAMPLE_MP3, SAMPLE_MP4]) {
        assertEquals((await mediaHere(folder, ["publish", path, "--name", 'ü "🎧".mp3'])).code, 0);
      }
      const { stdout } = await mediaHere(folder, ["publish", SAMPLE_MP3, "--json"]);
      const { token } = JSON.parse(stdout);
      assertEquals((await mediaHere(folder, ["unpublish", token])).code, 0);
      assertEquals((await importing(folder, objectsOf(2_500))).code, 0);
      const first = await exported(folder);
      assertEquals(first.split("\n").length, 2_504);
      const tokens = first.trim().split("\n").map((line) => JSON.parse(line).token);
      assertEquals(tokens, tokens.toSorted());

      let previous = first;
      const database = await postgres().createDatabase();
      for (const url of [postgres().urlOf(database), `sqlite:${folder}/again.sqlite`]) {
        const environment = { DATABASE_URL: url };
        await Deno.writeTextFile(`${folder}/exported`, previous);
        const { code, stderr } = await mediaHere(
          folder,
          ["import", `${folder}/exported`],
          environment,
        );
        assertEquals([code, stderr], [0, ""]);
        previous = await exported(folder, environment);
        assertEquals(previous, first);

        // The content belongs to the new catalogue now, too.
        await using server = await ServerProcess.start(environment, folder);
        const item = first.split("\n").map((line) => JSON.parse(line || "{}"))
          .find(({ sha256 }) => sha256 === MP3.sha256);
        const { status } = await requestRaw(server.port, "GET", `/media/${item.token}`);
        assertEquals(status, 200);
        assertEquals((await mediaHere(folder, ["publish", SAMPLE_MP4], environment)).code, 0);
      }
    }),
);
