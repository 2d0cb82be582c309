import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Session, UsageRow } from "../../lib/usage/record/records.ts";
import { PROCESS } from "../support/counted_call.ts";
import { openLocal } from "../support/local_storage.ts";
import { mediaCommand, mediaHere } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { DAY, HOUR, MINUTE, row } from "../support/usage_report.ts";

const test = needing("processes");

const policies = { "/audio/:token": definePolicy({ deprecatedAt: "2026-11-21" }) };
const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);

/** Writes sessions and rows into the ledger of a folder, and the start of its record. */
function write(folder: string, sessions: Partial<Session>[], rows: UsageRow[] = []): void {
  using ledger = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
  const session = ledger.prepare(
    `INSERT INTO media_head_session
     (id, policies, machine, pid, process_started, began, reported, clock, sequence, ended)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
  );
  const { machine, pid, started } = PROCESS;
  for (const { id = "", began = 0, reported = 0, clock = reported, ended = null } of sessions) {
    const announced = JSON.stringify(policies);
    session.run(id, announced, machine, pid, started, began, reported, clock, ended);
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

test("media usage --gate returns each verdict from a real ledger", async () => {
  await using subject = await openLocal();
  const { folder } = subject;
  const usage = (...args: string[]) => mediaHere(folder, ["usage", ...args]);
  const gate = async (...more: string[]) => {
    const { code, stdout, stderr } = await usage("--gate", "2", ...more);
    return [code, stdout || stderr] as const;
  };
  const [unknown, reason] = await gate();
  assertEquals(unknown, 3);
  assertMatch(
    reason,
    /^Unknown: no server deprecates a route, .*\n {2}No server has registered yet\n/,
  );

  const now = Date.now();
  const at = (instant: number) => new Date(instant).toISOString();
  write(folder, [{ id: "first", began: now - 5 * DAY, reported: now, ended: "stopped" }]);
  const [clear, text] = await gate();
  assertEquals(clear, 0);
  assertMatch(
    text,
    /^Clear: no calls to \/audio\/:token from .*, and the record is complete\.\nThe ver/,
  );

  const killed = { began: now - 2 * HOUR, reported: now - HOUR };
  write(folder, [{ id: "killed", ...killed }]);
  const [silent, advice] = await gate();
  assertEquals(silent, 3);
  assertMatch(
    advice,
    /Session killed \(process 4711 on web-1, started at 2027-01-31T12:00:00Z\) has not reported since .*\n.* run: deno task media usage --gone killed --ended TIME\n/,
  );
  const judged = JSON.parse((await gate("--json"))[1]);
  assertEquals([judged.verdict, judged.days, judged.clients], ["unknown", 2, []]);
  const { until, ...doubt } = judged.doubts[0];
  assertMatch(until, /^20.*Z$/);
  const reported = at(now - HOUR);
  const process = { ...PROCESS, started: "2027-01-31T12:00:00.000Z" };
  assertEquals(doubt, { reason: "silent", session: "killed", process, reported, isOpen: true });
  assertEquals(judged.remedy.gone, [{ id: "killed", process }]);
  const refused = await usage("--gone", "killed", "nobody", "--ended", reported);
  assertEquals(refused.code, 1);
  assertStringIncludes(refused.stderr, 'media: session "nobody" is not in the ledger; the gate');
  assertEquals((await gate())[0], 3, "all or none");
  const unread = mediaCommand(folder, ["usage", "--gate", "2"]).spawn();
  await unread.stdout.cancel();
  assertEquals((await unread.status).code, 3, "the verdict is the exit status even so");
  await unread.stderr.cancel();
  const before = await usage("--gone", "killed", "--ended", at(now - HOUR - MINUTE));
  assertEquals(before.code, 1);
  assertMatch(
    before.stderr,
    /^media: session killed \(process 4711 on web-1, started at .*\) reported when its machine's clock was at 20\S+, expected a time after that, got 20\S+: correct the time, or, if that clock was wrong, run --restart first\n$/,
  );
  const gone = await usage("--gone", "killed", "--ended", at(now - HOUR + 5_000));
  assertEquals([gone.code, gone.stderr], [0, ""]);
  assertMatch(
    gone.stdout,
    /^Session killed \(process 4711 on web-1, .*\) is gone; it last reported at 20\S+, and had ended by 20\S+Z\n$/,
  );
  const again = await usage("--gone", "killed", "--ended", at(now - HOUR + 6_000));
  assertEquals([again.code, again.stdout], [0, gone.stdout], "the first word stays");
  assertMatch(again.stderr, /session killed \(.*\) had ended already, so this changes nothing/);
  const [trusting, named] = await gate();
  assertEquals(trusting, 0);
  assertMatch(
    named,
    /^Clear, on your word of when 1 dead server had ended: .*\nDeclared gone: session killed \(/,
  );
  write(folder, [{ id: "alive", began: now - HOUR, reported: Date.now() }]);
  const early = await usage("--gone", "alive", "--ended", "now");
  assertEquals(early.code, 1);
  assertMatch(
    early.stderr,
    /session alive \(.*\) reported at .*, expected one that has been silent for a/,
  );
  write(folder, [{ id: "other", ...killed }]);
  const ended = at(now - HOUR + MINUTE);
  const json = JSON.parse((await usage("--gone", "other", "--ended", ended, "--json")).stdout);
  assertEquals(json, { session: "other", process, ended: "gone", reported, endedBy: ended });
  assertMatch((await gate())[1], /\n {2}Until \S+, session other \(.*\) may have answered calls: /);
  {
    using ledger = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
    ledger.exec("UPDATE media_head_session SET ended = 'stopped' WHERE id = 'alive'");
  }
  const restarted = JSON.parse((await usage("--restart", "--json")).stdout);
  assertMatch(restarted.started, /^20.*Z$/);

  const called = { ...row(0, "Overcast", 12), day: day(now), last: now };
  write(folder, [], [called]);
  const [verdictOfCalls, clients] = await gate();
  assertEquals(verdictOfCalls, 1);
  assertMatch(
    clients,
    /^Still called: 12 calls to \S+ by 1 client .*\n {2}Overcast, 12 calls, last rec/,
  );
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
  assertStringIncludes(
    unknownRoute.stderr,
    'route "/audio" was never counted, expected "/audio/:token"',
  );

  for (const days of ["0", "x", "1.5", "-1", "3651"]) {
    const { code, stderr } = await usage("--gate", days);
    assertEquals(code, 2, days);
    assertMatch(stderr, /Expected a number of days from 1 to 3650|unknown option/);
  }
  for (const time of ["2026-06-30", "2026-06-30T09:00:00", "yesterday", "2999-01-01T00:00:00Z"]) {
    const { code, stderr } = await usage("--gone", "x", "--ended", time);
    assertEquals(code, 2, time);
    assertMatch(stderr, /Expected a time that has passed, with its offset, e\.g\. 2027-/);
  }
  for (const alone of [["--gone", "x"], ["--ended", "now"]]) {
    const { code, stderr } = await usage(...alone);
    assertEquals(code, 2);
    assertMatch(stderr, /options '--gone <session\.\.\.>' and '--ended <time>' need each other/);
  }
  assertEquals((await usage("--gate", "3650")).code, 1);
  const alone = await usage("--ignore", "Overcast");
  assertEquals(alone.code, 2);
  assertStringIncludes(alone.stderr, "option '--ignore <client>' needs '--gate <days>'");
  const gated = [["--days", "3"], ["--html", "x"], ["--client", "x"], ["--restart"]];
  for (
    const conflict of [...gated.map((args) => ["--gate", "1", ...args]), [
      "--gone",
      "x",
      "--html",
      "y",
    ]]
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
  assertMatch(stdout, /\/audio\/:token: 24 calls\. Sunset: no date set\.\n {2}20/);
  assertMatch(stdout, /may hide others: set PUBLIC_URL, and the gate checks for one\.\n$/);
  const PUBLIC_URL = "https://media.example.com";
  const probing = await mediaHere(subject.folder, ["usage"], { PUBLIC_URL });
  assertMatch(probing.stdout, /may hide others: the gate \(--gate DAYS\) checks for one\.\n$/);
  const json = JSON.parse((await usage("--days", "3", "--json")).stdout);
  assertEquals([json.routes[0].calls, json.from], [24, rows[1]?.day]);
  assertEquals(json.completeSince, new Date(began).toISOString());
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
  const here = { INIT_CWD: subject.folder };
  await mediaHere(subject.folder, ["usage", "--html", "here.html"], here);
  assert((await Deno.stat(`${subject.folder}/here.html`)).isFile);
});
