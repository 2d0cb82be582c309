import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Heartbeat, UsageRow } from "../../lib/storage/ledger/records.ts";
import { addRows } from "../support/ledger_rows.ts";
import { openLocal } from "../support/local_storage.ts";
import { media, mediaCommand } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { DAY, HOUR, row } from "../support/usage_report.ts";

const test = needing("processes");

const policy = definePolicy({ deprecatedAt: "2026-11-21" }); // that of the commands
const policies = { "/audio/:token": policy, "/video/:token": policy };

test("media usage --gate returns each verdict from a real ledger", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const usage = (...args: string[]) => media(subject.folder, ["usage", ...args]);
  const gate = async (...more: string[]) => {
    const { code, stdout, stderr } = await usage("--gate", "2", ...more);
    return [code, stdout || stderr] as const;
  };
  const [unknown, reason] = await gate();
  assertEquals(unknown, 3);
  assertMatch(
    reason,
    /^Unknown: no calls to \/audio\/:token and \/video\/:token counted since .* may be missing\.\n {2}.*Z: no server was registered\n {2}Can be clear from 20..-..-..\.\n$/,
  );

  const now = Date.now();
  const from = now - 5 * DAY;
  const first: Heartbeat = {
    server: "first",
    policies,
    sequence: 0,
    from,
    until: now,
    end: "stopped",
  };
  await ledger.declare([first]);
  const [clear, text] = await gate();
  assertEquals(clear, 0);
  assertMatch(
    text,
    /^Clear: no calls to .* since .*, and servers were counting throughout\.\nThis is on the calls that reached/,
  );

  await ledger.declare([{ server: "killed", policies, sequence: 0, from, until: now - HOUR }]);
  const [silent, advice] = await gate();
  assertEquals(silent, 3);
  assertMatch(
    advice,
    /no heartbeat from server killed\n.* deno task media usage --gone killed\n$/,
  );
  const judged = JSON.parse((await gate("--json"))[1]);
  assertEquals([judged.verdict, judged.days, judged.clients], ["unknown", 2, []]);
  assertEquals(judged.gaps.length, 1);
  assertEquals(judged.gaps[0].start, new Date(now - HOUR).toISOString());
  const refused = await usage("--gone", "killed", "nobody");
  assertEquals(refused.code, 1);
  assertStringIncludes(refused.stderr, 'media: server "nobody" is not in the ledger');
  assertEquals((await gate())[0], 3, "all or none");
  const unread = mediaCommand(subject.folder, ["usage", "--gate", "2"]).spawn();
  await unread.stdout.cancel();
  assertEquals((await unread.status).code, 3, "the verdict is the exit status even so");
  await unread.stderr.cancel();
  const gone = await usage("--gone", "killed");
  assertEquals([gone.code, gone.stderr], [0, ""]);
  assertMatch(gone.stdout, /^Server killed is gone; its last heartbeat was at 20.*Z\n$/);
  assertEquals((await gate())[0], 0);
  await ledger.declare([{
    server: "killed",
    policies,
    sequence: 0,
    from: now - HOUR / 2,
    until: now - HOUR / 2,
  }]); // it was not gone
  assertEquals((await gate())[0], 3);
  await usage("--gone", "killed", "--json");

  const day = new Date(now).toISOString().slice(0, 10);
  await addRows(ledger, [{ ...row(0, "Overcast", 12), day, first: now - 5000, last: now }]);
  const [called, clients] = await gate();
  assertEquals(called, 1);
  assertMatch(
    clients,
    /^Still called: 12 calls to .* by 1 client .*\n {2}Overcast, 12 calls, last at 20/,
  );
  const { verdict, clients: [named] } = JSON.parse((await gate("--json"))[1]);
  assertEquals([verdict, named.client, named.calls], ["called", "Overcast", 12]);

  assertEquals((await gate("--ignore", "Overcast"))[0], 0);
  assertEquals((await gate("--at-most", "12"))[0], 0);
  assertEquals((await gate("--at-most", "11"))[0], 1);
  assertMatch(
    (await gate("--ignore", "x", "--ignore", "Overcast"))[1],
    /\nIgnored: x, 0 calls\nIgnored: Overcast, 12 calls\n/,
  );

  for (const days of ["0", "x", "1.5", "-1", "3651"]) {
    const { code, stderr } = await usage("--gate", days);
    assertEquals(code, 2, days);
    assertMatch(stderr, /Expected a number of days from 1 to 3650|unknown option/);
  }
  assertEquals((await usage("--gate", "3650")).code, 1);
  const gated = [["--days", "3"], ["--html", "x"], ["--client", "x"]];
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
  const { ledger } = subject.storage;
  const usage = (...args: string[]) => media(subject.folder, ["usage", ...args]);
  const now = Date.now();
  const from = now - 9 * DAY;
  await ledger.declare([{
    server: "first",
    policies,
    sequence: 0,
    from,
    until: now,
    end: "stopped",
  }]);
  const rows = [0, 3, 4].map((daysAgo): UsageRow => {
    const at = now - daysAgo * DAY;
    const day = new Date(at).toISOString().slice(0, 10);
    return { ...row(0, "Overcast", 12), day, first: at, last: at };
  });
  await addRows(ledger, rows);

  const { code, stdout, stderr } = await usage("--days", "3");
  assertEquals([code, stderr], [0, ""]);
  assertMatch(stdout, /\/audio\/:token: 24 calls\. Sunset: no date set\.\n {2}20/);
  const json = JSON.parse((await usage("--days", "3", "--json")).stdout);
  assertEquals([json.routes[0].calls, json.from], [24, rows[1]?.day]);
  assertEquals(json.recordedSince, new Date(now - 9 * DAY).toISOString());
  assert(!/\b1[6-9]\d{11}\b/.test(JSON.stringify(json)), "an instant that is not ISO 8601");

  const page = `${subject.folder}/report.html`;
  assertEquals((await usage("--html", page)).stdout, `Wrote ${page}\n`);
  assertMatch(await Deno.readTextFile(page), /^<!DOCTYPE html>[^]*Overcast[^]*<\/html>\n$/);
  assertStringIncludes((await usage("--client", "Overcast")).stdout, "Calls by Overcast to");
  const unknown = await usage("--client", "overcast");
  assertEquals(unknown.code, 1);
  assertStringIncludes(unknown.stderr, 'client "overcast" is not on record');
  const nowhere = await usage("--html", `${subject.folder}/no/where.html`);
  assertEquals(nowhere.code, 1);
  assertStringIncludes(nowhere.stderr, 'no/where.html" cannot be written');
  const here = { INIT_CWD: subject.folder };
  await media(subject.folder, ["usage", "--html", "here.html"], here);
  assert((await Deno.stat(`${subject.folder}/here.html`)).isFile);
});
