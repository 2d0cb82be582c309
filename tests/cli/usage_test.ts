import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { requireDatabaseUrl } from "../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import type { Session, UsageRow } from "../../lib/usage/record/records.ts";
import { PROCESS } from "../support/counted_call.ts";
import { openLocal } from "../support/local_storage.ts";
import { mediaCommand, mediaHere } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { DAY, HOUR, row } from "../support/usage_report.ts";

const test = needing("processes");

const policies = { "/audio/:token": definePolicy({ deprecatedAt: "2026-11-21" }) };
const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);

/** Writes sessions and rows into the ledger of a folder, and the start of its record. */
function write(folder: string, sessions: Partial<Session>[], rows: UsageRow[] = []): void {
  using ledger = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
  const session = ledger.prepare(
    `INSERT INTO media_head_session
     (id, policies, machine, pid, process_started, began, reported, timeline, sequence,
     may_serve_unrecorded, retain_days, ended)
     VALUES (?, ?, ?, ?, ?, ?, ?, '', 1, 0, 400, ?)`,
  );
  const { machine, pid, started } = PROCESS;
  for (const { id = "", began = 0, reported = 0, ended = null } of sessions) {
    session.run(id, JSON.stringify(policies), machine, pid, started, began, reported, ended);
  }
  const usage = ledger.prepare(
    `INSERT INTO media_head_usage VALUES (${Array(11).fill("?").join(", ")})`,
  );
  for (const { day, route, method, phase, brownout, status, impact, ...row } of rows) {
    const { client, release, calls, last } = row;
    usage.run(day, route, method, phase, brownout, status, impact, client, release, calls, last);
  }
  if (sessions.length === 0) return;
  ledger.exec("UPDATE media_head_ledger SET started = (SELECT min(began) FROM media_head_session)");
}

/** Runs statements on the ledger of a folder. */
function execute(folder: string, sql: string): void {
  using ledger = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
  ledger.exec(sql);
}

/** Writes an intent of a session to the ledger of a folder. */
async function intend(folder: string, id: string): Promise<void> {
  const place = requireDatabaseUrl(`sqlite:${folder}/catalogue.sqlite-ledger`, "test");
  const { ledger, close } = await openLedger(place, { runtime: () => DENO_RUNTIME });
  const session = await ledger.session(id) as Session;
  assert(await ledger.intend({ id: "x", route: "/audio/:token" }, session));
  await close();
}

test("media usage --gate returns each verdict from a real ledger", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const usage = (...args: string[]) => mediaHere(folder, ["usage", ...args]);
  const gate = async (...more: string[]) => {
    // The first server runs, whatever the time that the test takes.
    execute(folder, `UPDATE media_head_session SET reported = ${Date.now()} WHERE id = 'first'`);
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
  assertEquals((await gate())[0], 0, "it answered nobody");

  await intend(folder, "killed");
  const [since, until] = [now - 2 * HOUR, now + 22 * HOUR];
  execute(folder, `UPDATE media_head_intent SET since = ${since}, until = ${until}`);
  const [ended, advice] = await gate();
  assertEquals(ended, 3);
  assertMatch(advice, /^Unknown: .*\n {2}Session killed /);
  const judged = JSON.parse((await gate("--json"))[1]);
  assertEquals([judged.verdict, judged.days, judged.clients], ["unknown", 2, []]);
  const iso = (instant: number) => new Date(instant).toISOString();
  assertEquals(judged.doubts, [{
    reason: "intent",
    session: "killed",
    process: { ...PROCESS, started: "2027-01-31T12:00:00.000Z" },
    route: "/audio/:token",
    start: iso(since),
    until: iso(until),
    isOpen: false,
  }]);
  assertEquals(judged.left, []);
  const unread = mediaCommand(folder, ["usage", "--gate", "2"]).spawn();
  await unread.stdout.cancel();
  assertEquals((await unread.status).code, 3, "the verdict is the exit status even so");
  await unread.stderr.cancel();
  const [trusting, named] = await gate("--trust-stops");
  assertEquals(trusting, 0);
  assertMatch(named, /^Clear, on your word .*\nTrusted: .* session killed /);
  execute(folder, "DELETE FROM media_head_intent");

  const restarted = JSON.parse((await usage("--restart", "--json")).stdout);
  assert(Date.parse(restarted.started) >= now + DAY, "a lease from now");
  assertMatch(
    (await usage("--restart")).stdout,
    /^The record starts again at 20\S+Z; nothing was deleted\n$/,
  );
  const [again, wait] = await gate("--trust-stops", "--json");
  const { doubts, recovery } = JSON.parse(wait);
  assertEquals([again, doubts.length, doubts[0].reason], [3, 1, "started"]);
  assertMatch(recovery, /^20\d\d-/);

  const called = { ...row(0, "Overcast", 12), day: day(now), last: now };
  write(folder, [], [called]);
  const [verdictOfCalls, clients] = await gate();
  assertEquals(verdictOfCalls, 1);
  assertMatch(clients, /^Still called: .*\n {2}Overcast, 12 calls /);
  const { verdict, clients: [caller] } = JSON.parse((await gate("--json"))[1]);
  assertEquals([verdict, caller.client, caller.calls], ["called", "Overcast", 12]);
  assertEquals((await gate("--at-most", "11"))[0], 1);
  assertEquals((await gate("--at-most", "12"))[0], 3, "the record has started again");
  assertMatch(
    (await gate("--ignore", "x", "--ignore", "Overcast"))[1],
    /\nIgnored: x \(not on record\)\nIgnored: Overcast \(12 calls\)\n/,
  );
  assertEquals((await gate("--route", "/audio/:token"))[0], 1);
  const unknownRoute = await usage("--gate", "2", "--route", "/audio");
  assertEquals(unknownRoute.code, 2);
  assertStringIncludes(unknownRoute.stderr, 'route "/audio"');

  const anybody = await usage("--gate", "--ignore", "(no User-Agent)");
  assertEquals(anybody.code, 2);
  assertStringIncludes(
    anybody.stderr,
    "Expected the name of one client, and no name that may be anybody's",
  );
  assertEquals((await usage("--gate", "1", "--version")).code, 2, "0 would mean clear");
  assertEquals((await usage("--gate", "--json")).code, 1);
  for (const days of ["0", "x", "1.5", "-1", "3651"]) {
    const { code, stderr } = await usage("--gate", days);
    assertEquals(code, 2, days);
    assertMatch(stderr, /Expected a number of days from 1 to 3650|unknown option/);
  }
  assertEquals((await usage("--gate", "3650")).code, 1);
  const alone = await usage("--ignore", "Overcast");
  assertEquals(alone.code, 2);
  assertStringIncludes(alone.stderr, "option '--ignore <client>' needs '--gate'");
  const gated = [["--days", "3"], ["--html", "x"], ["--client", "x"], ["--restart"]];
  const report = [["--gate", "1"], ["--route", "x"], ["--days", "3"], ["--html", "x"]];
  const reporting = [...report, ["--client", "x"], ["--at-most", "1"], ["--trust-stops"]];
  for (
    const conflict of [
      ...gated.map((args) => ["--gate", "1", ...args]),
      ...reporting.map((args) => ["--restart", ...args]),
    ]
  ) {
    const { code, stderr } = await usage(...conflict);
    assertEquals(code, 2, conflict.join(" "));
    assertStringIncludes(stderr, "cannot be used with option");
  }
});

test("media usage reports one period as text, JSON and a page", async () => {
  await using subject = await openLocal();
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
  assertEquals(json.completeSince, new Date(began).toISOString());
  const byDefault = JSON.parse((await usage("--json")).stdout);
  assertEquals([json.isByRhythm, byDefault.isByRhythm, byDefault.days], [false, true, 30]);
  assert(!/\b1[6-9]\d{11}\b/.test(JSON.stringify(json)), "an instant that is not ISO 8601");

  const page = `${subject.folder}/report.html`;
  assertEquals((await usage("--html", page)).stdout, `Wrote ${page}\n`);
  assertMatch(await Deno.readTextFile(page), /^<!DOCTYPE html>[^]*Overcast[^]*<\/html>\n$/);
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
