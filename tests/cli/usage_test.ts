/** `media usage` on real ledgers. */

import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Session, UsageRow } from "../../lib/usage/record/records.ts";
import { PROCESS } from "../support/counted_call.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { mediaCommand, mediaHere } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { DAY, HOUR, row } from "../support/usage_report.ts";

const test = needing("processes");

const ROUTE = "/audio/:token";
const policies = { [ROUTE]: definePolicy({ deprecatedAt: "2026-11-21" }) };
const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);

const ledgerIn = (folder: string) => `${folder}/catalogue.sqlite-ledger`;

/** Opens storage in a folder, as a server leaves it that has created a ledger. */
async function openRecord() {
  const subject = await openLocal();
  await (await openLedgerIn(subject.folder)).close();
  return subject;
}

/** Writes sessions and rows into the ledger of a folder. */
function write(folder: string, sessions: Partial<Session>[], rows: UsageRow[] = []): void {
  using ledger = new DatabaseSync(ledgerIn(folder), { timeout: 60_000 });
  const session = ledger.prepare(
    `INSERT INTO media_head_session (id, opened, policies, machine, pid, process_started, on_demand,
       retain_days, began, reported, written, sequence, ended)
     VALUES (?, ?, ?, ?, ?, ?, 0, 400, ?, ?, ?, 1, ?)`,
  );
  const { machine, pid, started } = PROCESS;
  for (const { id = "", began = 0, reported = 0, ended = null } of sessions) {
    const process = [machine, pid, started];
    const times = [began, reported, reported];
    session.run(id, id, JSON.stringify(policies), ...process, ...times, ended);
  }
  const usage = ledger.prepare(
    `INSERT INTO media_head_usage VALUES (${Array(11).fill("?").join(", ")})`,
  );
  for (const { day, route, method, phase, brownout, status, impact, ...row } of rows) {
    const { client, release, calls, last } = row;
    usage.run(day, route, method, phase, brownout, status, impact, client, release, calls, last);
  }
}

test("media usage --gate returns each verdict from a real ledger", async () => {
  await using subject = await openRecord();
  const { folder } = subject;
  const usage = (...args: string[]) => mediaHere(folder, ["usage", ...args]);
  const execute = (sql: string) => {
    using ledger = new DatabaseSync(ledgerIn(folder), { timeout: 60_000 });
    ledger.exec(sql);
  };
  const gate = async (...more: string[]) => {
    // The first process reports, whatever the time that the test takes.
    const now = Date.now();
    execute(`UPDATE media_head_session SET reported = ${now}, written = ${now} WHERE id = 'first'`);
    const { code, stdout, stderr } = await usage("--gate", "2", ...more);
    return [code, stdout || stderr] as const;
  };
  const [unknown, reason] = await gate();
  assertEquals(unknown, 3);
  assertMatch(reason, /^Unknown: /);

  const now = Date.now();
  write(folder, [{ id: "first", began: now - 5 * DAY, reported: now }]);
  const [clear, text] = await gate();
  assertEquals(clear, 0);
  assertMatch(text, /^Clear: /);
  write(folder, [{ id: "killed", began: now - 2 * HOUR, reported: now - HOUR }]);
  const [named, line] = await gate();
  assertEquals(named, 0);
  assertMatch(
    line,
    /^Clear: .*\nNot on record: what process 4711 on web-1 answered after its last /,
  );
  const { verdict, days, clients, gaps } = JSON.parse((await gate("--json"))[1]);
  assertEquals([verdict, days, clients], ["clear", 2, []]);
  assertEquals(gaps, [{
    kind: "silent",
    routes: [ROUTE],
    start: new Date(now - HOUR).toISOString(),
    session: "killed",
    process: { ...PROCESS, started: "2027-01-31T12:00:00.000Z" },
    onDemand: false,
    weighs: true,
  }]);
  const unread = mediaCommand(folder, ["usage", "--gate", "2"]).spawn();
  await unread.stdout.cancel();
  assertEquals((await unread.status).code, 0, "the verdict is the exit status even so");
  await unread.stderr.cancel();

  const sunset = Date.now() + 9 * DAY;
  const dated = JSON.stringify({ [ROUTE]: { ...policies[ROUTE], sunsetAt: sunset } });
  execute(`UPDATE media_head_session SET policies = '${dated}' WHERE id = 'killed'`);
  const [announced, until] = await gate();
  assertEquals(announced, 4);
  assertMatch(until, /^Clear, but announced until 20\d\d-\S+Z: no call on record to /);

  const called = { ...row(0, "Overcast", 12), day: day(now), last: now };
  write(folder, [], [called]);
  const [verdictOfCalls, callers] = await gate();
  assertEquals(verdictOfCalls, 1);
  assertMatch(callers, /^Still called: 12 calls .* the last by Overcast /);
  const of = JSON.parse((await gate("--json"))[1]);
  assertEquals([of.verdict, of.clients[0].client, of.clients[0].calls], ["called", "Overcast", 12]);
  const [ignoring, ignored] = await gate("--ignore", "x", "--ignore", "Overcast");
  assertEquals(ignoring, 4);
  assertMatch(ignored, /: apart from 12 calls by Overcast, .*\nIgnored: x \(not on record\)\n/);
  assertEquals((await gate("--route", ROUTE))[0], 1);
  assertEquals((await usage("--gate", "--json")).code, 1);
  assertEquals((await usage("--gate", "3650")).code, 1);
});

test("media usage refuses words that are out of range or exclude each other, with 2", async () => {
  await using subject = await openRecord();
  const rows: [words: string[], said: RegExp][] = [
    [["--gate", "--ignore", "(no User-Agent)"], /Expected the name of one client, and no name /],
    [["--ignore", "Overcast"], /option '--ignore <client>' needs '--gate'/],
    [["--gate", "1", "--days", "3"], /cannot be used with option/],
    [["--gate", "1", "--html", "x"], /cannot be used with option/],
    ...["x", "1.5", "-1", "3651"].map((days): [string[], RegExp] => [
      ["--gate", days],
      /Expected a number of days from 1 to 3650|unknown option/,
    ]),
  ];
  for (const [words, said] of rows) {
    const { code, stdout, stderr } = await mediaHere(subject.folder, ["usage", ...words]);
    assertEquals([code, stdout], [2, ""], words.join(" "));
    assertMatch(stderr, said);
  }
});

test("media usage --also reads other records, and changes none", async () => {
  await using own = await openRecord();
  await using old = await openRecord();
  const now = Date.now();
  const last = now - 3 * DAY;
  write(own.folder, [{ id: "new", began: now - DAY, reported: now }]);
  const calls = { ...row(0, "Overcast", 12), day: day(last), last };
  write(old.folder, [{ id: "old", began: now - 9 * DAY, reported: now - DAY, ended: "stopped" }], [
    calls,
  ]);
  const also = ["--also", `sqlite:${old.folder}/catalogue.sqlite`];
  const usage = (...args: string[]) => mediaHere(own.folder, ["usage", ...args]);
  const before = await Deno.readFile(ledgerIn(old.folder));

  assertEquals((await usage("--gate", "2")).code, 3, "the record is too young");
  const { code, stdout, stderr } = await usage("--gate", "2", ...also);
  assertEquals([code, stderr], [0, ""]);
  assertMatch(stdout, /^Clear: .*\nNo process was reporting to sqlite:\S+catalogue\.sqlite\.\n/);
  assertMatch((await usage("--gate", "5", ...also)).stdout, /^Still called: 12 calls /);
  assertMatch((await usage("--days", "5", ...also)).stdout, / {2}Overcast +12 +1 /);
  const json = JSON.parse((await usage("--days", "5", "--json", ...also)).stdout);
  assertEquals([json.clients[0].calls, json.quietRecords.length], [12, 1]);
  assertEquals((await usage("--html", `${own.folder}/page.html`, ...also)).code, 0);
  assertStringIncludes(await Deno.readTextFile(`${own.folder}/page.html`), "Overcast");
  assertEquals(await Deno.readFile(ledgerIn(old.folder)), before);
  for (const file of ["catalogue.sqlite", "catalogue.sqlite-ledger"]) {
    const over = await usage("--html", `${old.folder}/${file}`, ...also);
    assertEquals(over.code, 1, "no page may replace a record");
  }

  const missing = await usage("--gate", "2", "--also", `sqlite:${own.folder}/none`);
  assertEquals(missing.code, 3);
  assertMatch(missing.stderr, /^media: .*\/none-ledger" \(--also\) cannot be opened/);
  write(old.folder, [{ id: "new", began: now - DAY, reported: now }]);
  const copied = await usage("--gate", "2", ...also);
  assertEquals([copied.code, copied.stdout], [3, ""]);
  assertMatch(
    copied.stderr,
    /^media: session new is in sqlite:\S+ and in sqlite:\S+: one is a copy/,
  );
});

test("media usage reports one period as text, JSON and a page", async () => {
  await using subject = await openRecord();
  const usage = (...args: string[]) => mediaHere(subject.folder, ["usage", ...args]);
  const now = Date.now();
  const began = now - 9 * DAY;
  const rows = [0, 3, 4].map((daysAgo) => {
    const last = now - daysAgo * DAY;
    return { ...row(0, "Overcast", 12), day: day(last), last };
  });
  write(subject.folder, [{ id: "first", began, reported: now, ended: "stopped" }], rows);

  const { code, stdout, stderr } = await usage("--days", "3");
  assertEquals([code, stderr], [0, ""]);
  assertMatch(
    stdout,
    /^Still called: .*\n\n\/audio\/:token: 24 calls\. Sunset: no date set\.\n {2}Client /,
  );
  assertMatch(stdout, /: set PUBLIC_URL, .*\n\nCalls /);
  const PUBLIC_URL = "https://media.example.com";
  const probing = await mediaHere(subject.folder, ["usage"], { PUBLIC_URL });
  assertMatch(probing.stdout, /: the gate \(--gate\) .*\n\nCalls /);
  const json = JSON.parse((await usage("--days", "3", "--json")).stdout);
  assertEquals([json.routes[0].calls, json.from], [24, rows[1]?.day]);
  assertEquals(json.onRecordSince, new Date(began).toISOString());
  const byDefault = JSON.parse((await usage("--json")).stdout);
  assertEquals([json.isByRhythm, byDefault.isByRhythm, byDefault.days], [false, true, 30]);
  assert(!/\b1[6-9]\d{11}\b/.test(JSON.stringify(json)), "an instant that is not ISO 8601");

  const page = `${subject.folder}/report.html`;
  assertEquals((await usage("--html", page)).stdout, `Wrote ${page}\n`);
  assertMatch(await Deno.readTextFile(page), /^<!DOCTYPE html>[^]*Overcast[^]*<\/html>\n$/);
  const asOf = /\d{2}:\d{2}(?::\d{2})?/g; // which moves on
  const shown = await usage("--html", "-");
  assertEquals([shown.code, shown.stderr], [0, ""]);
  assertEquals(
    shown.stdout.replaceAll(asOf, ""),
    (await Deno.readTextFile(page)).replaceAll(asOf, ""),
  );
  assertMatch((await usage("--html", "-", "--client", "Overcast")).stdout, /^<!DOCTYPE html>/);
  assertThrows(() => Deno.statSync("-"), Deno.errors.NotFound);
  assertStringIncludes((await usage("--client", "Overcast")).stdout, "Calls by Overcast to");
  const unknown = await usage("--client", "overcast");
  assertEquals(unknown.code, 1);
  assertStringIncludes(unknown.stderr, 'No client "overcast" on record; use');
  const nowhere = await usage("--html", `${subject.folder}/no/where.html`);
  assertEquals(nowhere.code, 1);
  assertStringIncludes(nowhere.stderr, 'no/where.html" cannot be written');
  // The file is opened before the record is read, and left as it was if that fails.
  const nobody = ["--client", "nobody", "--html"];
  const early = await usage(...nobody, `${subject.folder}/no/where.html`);
  assertStringIncludes(early.stderr, 'no/where.html" cannot be written');
  const before = await Deno.readTextFile(page);
  assertMatch((await usage(...nobody, page)).stderr, /on record/);
  assertEquals(await Deno.readTextFile(page), before);
  const names = [...Deno.readDirSync(subject.folder)].map(({ name }) => name);
  assertEquals(names.filter((name) => name.includes("unfinished")), []);
  const here = { INIT_CWD: subject.folder };
  await mediaHere(subject.folder, ["usage", "--html", "here.html"], here);
  assert((await Deno.stat(`${subject.folder}/here.html`)).isFile);
});
