/** The program `lifecycle`: its words, and how it ends. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import project from "../../deno.json" with { type: "json" };
import { withoutPassword } from "../../lib/input/printable.ts";
import { lifecycle } from "../support/lifecycle_cli.ts";
import { Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";

const test = needing("network");

Deno.test("lifecycle prints its help and version on standard output, with 0", async () => {
  const check = /^Usage: lifecycle check \[options\] <url\.\.\.>\n/;
  const usage = /^Usage: lifecycle usage \[options\]\n/;
  const rows: [words: string[], text: RegExp][] = [
    [["--help"], /^Usage: lifecycle \[options\] \[command\]\n/],
    [["-h"], /\n {2}check .*\n {2}usage .*\n {2}hold .*/s],
    [["help"], /\n {2}check .*\n {2}usage .*\n {2}hold .*/s],
    [["check", "--help"], check],
    [["check", "-h"], check],
    [["help", "check"], check],
    [["usage", "--help"], usage],
    [["help", "usage"], usage],
    [["hold", "--help"], /^Usage: lifecycle hold \[options\]\n/],
    [["--version"], new RegExp(`^${project.version}\n$`)],
  ];
  for (const [words, text] of rows) {
    const { code, stdout, stderr } = await lifecycle(...words);
    assertEquals([code, stderr], [0, ""], words.join(" "));
    assertMatch(stdout, text);
  }
});

Deno.test("lifecycle refuses wrong words on standard error, with 2", async () => {
  const rows: [words: string[], message: string][] = [
    [[], "Usage: lifecycle [options] [command]"],
    [["https://a"], "error: unknown command 'https://a'"],
    [["chek"], "error: unknown command 'chek'\n(Did you mean check?)"],
    [["constructor"], "error: unknown command 'constructor'"],
    [["--bogus"], "error: unknown option '--bogus'"],
    [["check"], "error: missing required argument 'url'"],
    [["check", "--json"], "error: missing required argument 'url'"],
    [["check", "--colour", "http://a"], "error: unknown option '--colour'"],
    [["check", "--header", "a", "http://a"], "argument 'a' is invalid. Expected \"NAME: VALUE\", "],
    [["check", "--header", "a: \x1b", "http://a"], "argument 'a: \\u001b' is invalid. "],
    [["check", "--header"], "error: option '--header <line>' argument missing"],
    [["check", "--expect", "no", "http://a"], "argument 'no' is invalid. Expected \"none\"."],
    [["check", "--expect", "http://a"], "argument 'http://a' is invalid"],
    [["usage", "--header", "a"], "argument 'a' is invalid. Expected \"NAME: VALUE\", "],
    [["check", "--version"], "error: unknown option '--version'"],
    ...["-V", "--version"].map((word): [string[], string] => [
      ["usage", "--database", "sqlite:none", "--gate", "1", word], // 0 would mean "clear"
      `error: unknown option '${word}'`,
    ]),
    [["usage"], "error: required option '--database <url>' not specified"],
    [["hold", "--bogus"], "error: required option '--database <url>' not specified"],
    ...["ftp://me:secret@a", "me:secret@example.com/v1", "http://me:secret"].map(
      (url): [string[], string] => [
        ["check", url],
        `lifecycle: "${
          withoutPassword(url)
        }" is invalid: expected a URL that starts with "https://" or "`,
      ],
    ),
    ...["ftp://a", "example.com/v1", "localhost:80", "http://", "http:a"].map(
      (url): [string[], string] => [
        ["check", "http://a", url],
        `'${url}' is invalid for argument 'url'. Expected a URL that starts with "https://" or "`,
      ],
    ),
  ];
  for (const [words, message] of rows) {
    const { code, stdout, stderr } = await lifecycle(...words);
    assertEquals([code, stdout], [2, ""], words.join(" "));
    assertStringIncludes(stderr, message);
    assert(!stderr.includes("secret"));
  }
});

test("lifecycle check prints what it found, as text or JSON, without control characters", async () => {
  await using origin = new Origin(({ headers }) =>
    new Response("", {
      headers: { "Deprecation": "@1", "Sunset": headers.get("X-Sunset") ?? "" },
    })
  );
  const url = origin.url("/v1");
  const header = ["--header", "X-Sunset: old", "--header", "x-sunset:\x9b31m"];
  const { code, stdout } = await lifecycle("check", ...header, url);
  assertEquals(code, 1);
  assertStringIncludes(stdout, '\n  fault: Sunset is "old, \\u009b31m": expected an HTTP-date');
  const json = await lifecycle("check", url, "--json", ...header);
  assertEquals(json.code, 1);
  for (const said of [stdout, json.stdout]) assert(!/[^\P{Cc}\n]/u.test(said));
  const [{ status, faults: [fault] }] = JSON.parse(json.stdout);
  assertEquals([status, fault.name], [200, "invalid-sunset"]);
  const expecting = await lifecycle("check", "--expect", "none", url);
  assertEquals(expecting.code, 1);
  assertMatch(expecting.stdout, /\n {2}not as expected: a retirement is announced\n$/);
  const unmet = await lifecycle("check", "--expect", "none", "--json", url);
  const [{ expectation, ...result }] = JSON.parse(unmet.stdout);
  assertEquals([unmet.code, expectation, "faults" in result], [1, "not met", false]);
});

test("lifecycle check sends the user's fields in place of its own", async () => {
  const sent: (string | null)[] = [];
  await using origin = new Origin(({ headers }) => {
    sent.push(headers.get("User-Agent"), headers.get("Accept-Encoding"));
    return new Response(null, { headers: { Deprecation: "@1" } });
  });
  const own = ["--header", "user-agent: a/1", "--header", "ACCEPT-ENCODING: gzip"];
  await lifecycle("check", ...own, origin.url("/v1"));
  assertEquals(sent, ["a/1", "gzip", "a/1", "gzip"]);
});
