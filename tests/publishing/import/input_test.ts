import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { isBlank, readInput } from "../../../lib/publishing/import/input.ts";

const TOKEN = "6f1d8c1e-6f0a-4d3e-9c3b-0a1b2c3d4e5f";

/** Returns what is read: the header, and the members of each line with its number, or its refusal. */
async function readAll(input: string | Uint8Array<ArrayBuffer>, size = Infinity) {
  const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += size) {
      yield await Promise.resolve(bytes.slice(start, start + size));
    }
  }
  const { header, groups, parse } = await readInput(chunks());
  const given = (await Array.fromAsync(groups)).flat().filter((line) => !isBlank(line));
  const lines = given.flatMap(({ number, bytes }): [number: number, members: unknown][] => {
    try {
      const parsed = parse(bytes);
      return parsed === undefined ? [] : [[number, parsed.members]];
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      return [[number, error.message]];
    }
  });
  return { header: await new Blob(header.map(({ bytes }) => bytes.slice())).text(), lines };
}

/** As LibreOffice 7.4 exports a sheet, with a row that is empty, and a name of two lines. */
const SHEET = [
  ["token", "path", "length", "publishedAt", "kind"],
  [TOKEN.toUpperCase(), '"Folge 1; ""Anfang"".mp3"', "26186", "2024-03-01", ""],
  ["", "", "", "", ""],
  [TOKEN, '"zwei\nZeilen, ü.mp3"', "", "", "audio"],
];
const SHEET_LINES = [
  [2, {
    ...{ token: TOKEN.toUpperCase(), path: 'Folge 1; "Anfang".mp3', length: "26186" },
    publishedAt: "2024-03-01",
  }],
  [4, { token: TOKEN, path: "zwei\nZeilen, ü.mp3", kind: "audio" }],
];
const toCsv = (separator: string, end = "\n") =>
  SHEET.map((cells) => cells.join(separator) + end).join("");

Deno.test("readInput() reads CSV as spreadsheets write it, wherever chunks begin and end", async () => {
  const files: string[] = [
    toCsv(","),
    toCsv(";"),
    toCsv(";", "\r\n"),
    `\ufeff${toCsv(",", "\r\n")}`,
    toCsv(",").replace(/.*\n/, '"token","path","length","publishedAt","kind"\n'),
    toCsv(",").replace(/.*\n/, "token , path,length,publishedAt, kind\n"),
    toCsv(",").replaceAll(/(?<!zwei)\n/g, ",,\n"), // columns without a name
    toCsv(",").replaceAll(/,+\n/g, "\n"), // as Excel and ONLYOFFICE leave out what is empty
  ];
  for (const text of files) {
    for (const size of [Infinity, 1, 7]) {
      const { header, lines } = await readAll(text, size);
      assertEquals<unknown>(lines, SHEET_LINES, text);
      assertEquals(header, (/^\ufeff?(.*\r?\n)/.exec(text) ?? [])[1], "a Blob has no mark");
    }
  }
  const stated = `\ufeffsep=;\r\n${toCsv(";", "\r\n")}`;
  const { header, lines } = await readAll(stated);
  assertEquals(header, "sep=;\r\ntoken;path;length;publishedAt;kind\r\n");
  assertEquals<unknown>(
    lines,
    SHEET_LINES.map(([number, members]) => [number as number + 1, members]),
  );
  const late = await readAll("\n \r\n\ufeff\npath\na.mp3\n\nb c.mp3");
  assertEquals<unknown>(late.lines, [[5, { path: "a.mp3" }], [7, { path: "b c.mp3" }]]);
});

Deno.test("readInput() refuses rows that do not fit, and no other", async () => {
  const rows: [row: string, reason: RegExp][] = [
    ["a.mp3,1,b,c", /^The line has 4 values; expected 3 at most: path,length,name$/],
    ['"a".mp3,1,b', /^A quote is not closed, or is inside a value; expected quotes around/],
    ['a 5" disk.mp3,1,b', /^A quote is not closed, or is inside a value/],
    ['a.mp3,1, "b"', /^A quote is not closed, or is inside a value/],
    ['"a.mp3,1,b', /^A quote is not closed, or is inside a value/],
    ['a.mp3,"",""b', /^A quote is not closed, or is inside a value/],
  ];
  for (const [row, reason] of rows) {
    const { lines } = await readAll(`path,length,name\nc.mp3,,"d"\n${row}\ne.mp3,,"",\nf.mp3,2,`);
    const [first, refused, ...others] = lines;
    assertEquals<unknown>(first, [2, { path: "c.mp3", name: "d" }]);
    assertEquals(refused?.[0], 3, row);
    assertMatch(String(refused?.[1]), reason);
    assertEquals<unknown>(
      others,
      [[4, { path: "e.mp3" }], [5, { path: "f.mp3", length: "2" }]],
      row,
    );
  }
});

Deno.test("readInput() loses one line by a quote that is never closed", async () => {
  const names = Array.from({ length: 9_000 }, (_, index) => `name ${index}.mp3`);
  for (const count of [3, names.length]) { // fewer bytes than a line may have, and more
    const rest = names.slice(0, count);
    const { lines } = await readAll(`path\n"open\n${rest.join("\n")}\n`, 65_536);
    assertEquals(lines[0]?.[0], 2);
    assertMatch(String(lines[0]?.[1]), /^A quote is not closed/);
    const expected = rest.map((path, index) => [index + 3, { path }]);
    assertEquals<unknown>(lines.slice(1), expected);
  }
});

Deno.test("readInput() loses one line by an open quote, whatever the lines after it have", async () => {
  const rows: [rest: string, lines: unknown[]][] = [
    ['c.mp3,"d"', [{ path: "c.mp3", name: "d" }]],
    ['"c.mp3","d"', [{ path: "c.mp3", name: "d" }]],
    ['"c.mp3",', [{ path: "c.mp3" }]],
    ['c.mp3,""', [{ path: "c.mp3" }]],
    ['"",d', [{ name: "d" }]],
    ['"a ""b""",d', [{ path: 'a "b"', name: "d" }]],
    ['"c\nc.mp3",d', [{ path: "c\nc.mp3", name: "d" }]],
  ];
  for (const [rest, expected] of rows) {
    for (const quote of ['"a.mp3,b', 'a.mp3,"b']) {
      for (const size of [1, 7, Infinity]) {
        const { lines } = await readAll(`path,name\n${quote}\nf.mp3,\n${rest}\ne.mp3,\n`, size);
        const [[number, refusal] = [], ...others] = lines;
        assertEquals(number, 2, rest);
        assertMatch(String(refusal), /^A quote is not closed/, rest);
        assertEquals<unknown>(
          others.map(([, members]) => members),
          [{ path: "f.mp3" }, ...expected, { path: "e.mp3" }],
          rest,
        );
      }
    }
  }
});

Deno.test("readInput() reads a missing value as empty, in CSV only", async () => {
  const forms = ["NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "undefined", "\\N"];
  const rows = forms.map((form) => `a.mp3,${form},"${form}",${form}\r\n`).join("");
  const { lines } = await readAll(`path,name,language,length\n${rows}`);
  assertEquals<unknown>(lines, forms.map((_, at) => [at + 2, { path: "a.mp3" }]));
  const others = ["na", "Na", "n/a", "NAN", "none", "Null", "-", "NA "];
  const texts = others.map((name) => `a.mp3,${name},,\n`).join("");
  const found = await readAll(`path,name,language,length\n${texts}`);
  assertEquals<unknown>(
    found.lines,
    others.map((name, at) => [at + 2, { path: "a.mp3", name }]),
  );
  const tokens = await readAll("token,path\n,a.mp3\nNA,b.mp3\n,\n");
  assertEquals<unknown>(tokens.lines, [
    [2, { token: "", path: "a.mp3" }],
    [3, { token: "", path: "b.mp3" }],
  ]);
  const json = await readAll('{"path":"a.mp3","language":"nan","name":"NA"}\n');
  assertEquals<unknown>(json.lines, [[1, { path: "a.mp3", language: "nan", name: "NA" }]]);
});

Deno.test("readInput() refuses files of another format or encoding, once", async () => {
  const utf16 = (text: string, isLittle: boolean) =>
    new Uint8Array([...text].flatMap((char) => {
      const code = char.charCodeAt(0);
      return isLittle ? [code & 255, code >> 8] : [code >> 8, code & 255];
    }));
  const json = `{"path":"a.mp3"}\r\n`;
  const [formats, encoding] = [
    /; expected JSON objects, one per line, or CSV/,
    /^The file is in U/,
  ];
  const rows: [input: string | Uint8Array<ArrayBuffer>, message: RegExp][] = [
    [utf16(`\ufeff${json}`, true), encoding],
    [utf16(`\ufeff${json}`, false), encoding],
    [utf16(json, true), encoding],
    [utf16(`\n${json}`, false), encoding],
    [utf16("\ufefftoken,path\n", true), /expected UTF-8. In Windows PowerShell, write it with/],
    ["a.mp3\nb.mp3\n".repeat(9_000), /^Line 1 is "a.mp3"; expected JSON objects, one per line/],
    [`${TOKEN},a.mp3\n`, formats],
    ["Title,File\nx,a.mp3\n", /^Line 1 is "Title,File"; expected JSON objects/],
    ["<xml>\n</xml>\n", formats],
    ["\n\n- path: a.mp3\n", /^Line 3 is "- path: a.mp3"; expected/],
    ['[{"path":"a.mp3"},{"path":"b.mp3"}]\n', /For an array: jq --compact-output "\.\[\]", or /],
    ['[\n  {\n    "path": "a.mp3"\n  }\n]\n', /^Line 1 is "\["; .* --compact-output "\.\[\]", or /],
    ['[\n{"path":"a.mp3"},\n{"path":"b.mp3"}\n]\n', /^Line 1 is "\["; .* "\.\[\]", or /],
    ['[\r\n{"path":"a.mp3"}\r\n,{"path":"b.mp3"}\r\n]\r\n', /^Line 1 is "\["; .* "\.\[\]", or /],
    ['[{"path":"a.mp3"},\n{"path":"b.mp3"}]\n', /^Line 1 is .* --compact-output "\.\[\]", or /],
    ['\ufeff\n[\n{"path":"a.mp3"}\n]\n', /^Line 2 is "\["; .* "\.\[\]", or /],
    [
      '{"items":\n[\n{"path":"a.mp3"}\n,{"path":"b.mp3"}\n]}\n',
      /^Line 2 is "\["; .* "\.\[\]", or /,
    ],
    [
      '{"path":"a.mp3"},\n{"path":"b.mp3"}\n',
      /^Line 1 is "\{"path":"a.mp3"\},"; .*\. Without the commas at the ends of lines: sed "s\/,\[\[:space:\]\]\*\$\/\/"$/,
    ],
    ['{"path":"a.mp3"},\n'.repeat(5_000), /Without the commas at the ends of lines: sed/],
    [`[${'{"path":"a.mp3"},'.repeat(5_000)}`, /one item per line\. For an array: jq --com/],
    ['{\n  "path": "a.mp3"\n}\n', /^Line 1 is "{"; .* jq --compact-output \.$/],
    ["token\tpath\n", /^Values are separated by "\\t"; expected "," or ";"$/],
    ["sep=|\ntoken|path\n", /^Values are separated by "\|"; expected "," or ";"$/],
    ['sep="\ntoken"path\n', /^Values are separated by """; expected "," or ";"$/],
    ['\ufeffsep="\r\n', /^Values are separated by """; expected/],
    [",token,path\n0,,a.mp3\n", /^The first line has no name for column 1; name it, or leave it/],
    ['"","path"\n"1","a.mp3"\n', /^The first line has no name for column 1; /],
    ["path,,name\na.mp3,x,b\n", /^The first line has no name for column 2; /],
    ["token,path\r\r\n,a.mp3\r\r\n", /^Lines end with CR CR LF; expected LF or CRLF$/],
    ["sep=;\r\r\ntoken;path\r\r\n", /^Lines end with CR CR LF; expected LF or CRLF$/],
    ["token,path,token\n", /^The first line names "token" twice; expected it once$/],
    [
      "token,Path\n",
      /^The first line names "Path", which is unknown; expected state, token, kind,/,
    ],
    ["token;path,name\n", /^The first line names "path,name", which is unknown; expected/],
    ["path\ra.mp3\rb.mp3\r", /^Lines end with CR alone; expected LF or CRLF$/],
  ];
  for (const [input, message] of rows) {
    for (const size of [Infinity, 5]) {
      const { message: found } = await assertRejects(() => readAll(input, size), RefusedError);
      assertMatch(found, message);
    }
  }
  // One that is right shows that the others are wrong.
  const { lines } = await readAll(`nonsense\n{}\n`, 1);
  assertEquals<unknown>(lines, [[1, '"nonsense" is not a JSON object'], [2, {}]]);
});

Deno.test("readInput() numbers all lines of a record", async () => {
  async function* chunks() {
    yield await Promise.resolve(new TextEncoder().encode('path,name\n"a\n\n.mp3",b\nc.mp3,"d\n'));
    yield new TextEncoder().encode('e"');
  }
  const lines = (await Array.fromAsync((await readInput(chunks())).groups)).flat();
  assertEquals(lines.map(({ number, last }) => [number, last]), [[2, 4], [5, 6]]);
});

Deno.test("isBlank() is true of white space, after a byte order mark or not", () => {
  const rows: [text: string, isIt: boolean][] = [
    ["", true],
    [" \t\r\n", true],
    ["\ufeff", true],
    ["\ufeff\r\n", true],
    ["\ufeff{}", false],
    ["\ufeff\ufeff", false],
    ["\u00a0", false],
    ["{", false],
  ];
  for (const [text, isIt] of rows) {
    assertEquals(isBlank({ bytes: new TextEncoder().encode(text) }), isIt, JSON.stringify(text));
  }
});
