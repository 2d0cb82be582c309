import { assert, assertEquals, assertMatch } from "@std/assert";
import { definePolicy } from "../lib/lifecycle/policy.ts";
import { firstDayFor, judge, reportUsage, type Verdict } from "../lib/lifecycle/report.ts";
import { usageCsv } from "../lib/cli/usage_csv.ts";
import { usagePage } from "../lib/cli/usage_page.ts";
import { usageText } from "../lib/cli/usage_text.ts";
import type { Usage, Watch } from "../lib/storage/ledger.ts";
import { HAS_BROWSER, launchBrowser } from "./support/browser.ts";
import { openLocal } from "./support/local_storage.ts";
import { media } from "./support/media_cli.ts";
import { fromRoot } from "./support/paths.ts";

const NOW = Date.parse("2027-06-15T12:00:00Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-17",
  brownouts: ["2027-06-10T09:00Z/PT8H"],
});

/** A line of the ledger: so many days ago, by whom, how often. */
function line(daysAgo: number, client: string, calls: number, more: Partial<Usage> = {}): Usage {
  const at = NOW - daysAgo * DAY;
  const day = new Date(at).toISOString().slice(0, 10);
  const fixed = {
    route: "/audio/:token",
    method: "HEAD",
    phase: "deprecated",
    status: "2xx",
  } as const;
  return { ...fixed, day, client, calls, first: at, last: at + HOUR, ...more };
}

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  for (const value of values) yield await Promise.resolve(value);
}

const LINES = [
  line(20, "Forgotten", 7), // before both periods
  line(12, "Overcast", 40),
  line(8, "Overcast", 10),
  line(6, "Overcast", 30),
  line(6, "Overcast", 5, { phase: "brownout", status: "4xx" }),
  line(5, "curl", 60, { route: "/video/:token" }),
  line(0, "Overcast", 1),
];
const OPTIONS = { routes: ["/audio/:token", "/video/:token"], policy: POLICY, days: 7, now: NOW };

Deno.test("reportUsage() adds up a period, its days, routes and clients, and the period before", async () => {
  assertEquals(firstDayFor(7, NOW), "2027-06-02");
  const report = await reportUsage(each(LINES), OPTIONS);
  assertEquals([report.from, report.to, report.calls, report.previousCalls], [
    "2027-06-09",
    "2027-06-15",
    96,
    50,
  ]);
  assertEquals(report.daysToSunset, 1);
  assertEquals(
    report.routes.map(({ route, calls, previousCalls }) => [route, calls, previousCalls]),
    [["/audio/:token", 36, 50], ["/video/:token", 60, 0]],
  );
  assertEquals(report.routes[0]?.days.map(({ calls }) => calls), [35, 0, 0, 0, 0, 0, 1]);
  assertEquals(report.routes[0]?.days[0]?.byPhase, { deprecated: 30, brownout: 5 });
  assertEquals(
    report.clients.map((
      { client, calls, previousCalls, routes },
    ) => [client, calls, previousCalls, routes]),
    [
      ["curl", 60, 0, ["/video/:token"]],
      ["Overcast", 36, 50, ["/audio/:token"]],
    ],
  );
  assertEquals(report.clients[1]?.first, NOW - 6 * DAY);
  assertEquals(report.clients[1]?.last, NOW + HOUR);
});

Deno.test("judge() says clear, called or unknown, on evidence", async () => {
  const watch = (fromHoursAgo: number, untilHoursAgo: number, server = "a"): Watch => ({
    server,
    from: NOW - fromHoursAgo * HOUR,
    until: NOW - untilHoursAgo * HOUR,
  });
  const always = [watch(100, 0)];
  const rows: [
    what: string,
    lines: Usage[],
    watches: Watch[],
    verdict: Verdict["verdict"],
    gaps?: number,
  ][] = [
    ["nothing called, always counting", [], always, "clear"],
    ["called before", [line(3, "curl", 5)], always, "clear"],
    ["called at the first moment", [line(2, "curl", 5, { last: NOW - 2 * DAY })], always, "called"],
    ["called just now", [line(0, "curl", 1)], always, "called"],
    [
      "called once a moment before",
      [line(2, "curl", 5, { last: NOW - 2 * DAY - 1 })],
      always,
      "clear",
    ],
    ["called, and not always counting", [line(0, "curl", 1)], [], "called"],
    ["never counting", [], [], "unknown", 1],
    ["counting since a while", [], [watch(47, 0)], "unknown", 1],
    ["not counting any more", [], [watch(100, 1)], "unknown", 1],
    ["a gap", [], [watch(100, 30), watch(29, 0)], "unknown", 1],
    ["two gaps", [], [watch(47, 30), watch(29, 0)], "unknown", 2],
    [
      "a restart",
      [],
      [watch(100, 30), { server: "a", from: NOW - 30 * HOUR + 50_000, until: NOW }],
      "clear",
    ],
    ["one server covers for another", [], [watch(100, 20), watch(30, 0, "b")], "clear"],
    ["a long watch over a short one", [], [watch(100, 0), watch(40, 39, "b")], "clear"],
    [
      "the last seconds are on their way",
      [],
      [{ server: "a", from: 0, until: NOW - 5_000 }],
      "clear",
    ],
  ];
  for (const [what, lines, watches, expected, gaps] of rows) {
    const verdict = await judge(each(lines), watches, { days: 2, now: NOW });
    assertEquals(verdict.verdict, expected, what);
    if (verdict.verdict === "unknown") assertEquals(verdict.gaps.length, gaps, what);
    if (verdict.verdict === "called") assertEquals(verdict.clients[0]?.client, "curl", what);
  }
});

Deno.test("usageText() shows the calls a day, the clients, the sunset and the verdict", async () => {
  const report = await reportUsage(each(LINES), OPTIONS);
  const text = usageText(report, await judge(each(LINES), [], { days: 7, now: NOW }));
  assertMatch(text, /^Calls of deprecated routes from 2027-06-09 to 2027-06-15 \(7 days, UTC\)\n/);
  assertMatch(text, /\n\/audio\/:token: 36 calls, down 28 % against the 7 days before\n/);
  assertMatch(text, /\n\/video\/:token: 60 calls, new against the 7 days before\n/);
  assertMatch(text, /\n {2}2027-06-09 {2}35 {2}█{40} {2}brownout\n {2}2027-06-10 {3}0\n/);
  assertMatch(text, /\ncurl +60 +new +2027-06-10T12:00:00Z +2027-06-10T13:00:00Z\n/);
  assertMatch(
    text,
    /\nSunset: 2027-06-17T00:00:00Z, in 1 day\.\nStill called in the last 7 days, by:\n {2}Overcast, last at /,
  );
});

Deno.test("usageCsv() quotes what needs it, and gives a spreadsheet no formulas", async () => {
  const lines = [line(0, "curl", 3), line(0, "+1,2", 1), line(0, 'a"b', 1), line(0, "-x", 1)];
  const csv = await Array.fromAsync(usageCsv(each(lines)));
  assertEquals(csv[0], "day,route,method,phase,status,client,calls,first,last");
  assertEquals(
    csv[1],
    "2027-06-15,/audio/:token,HEAD,deprecated,2xx,curl,3,2027-06-15T12:00:00.000Z,2027-06-15T13:00:00.000Z",
  );
  assertEquals(csv.slice(2).map((row) => row.split("2xx,")[1]?.split(",1,2027")[0]), [
    `"'+1,2"`,
    '"a""b"',
    "'-x",
  ]);
});

Deno.test({
  name: "the report's page loads nothing, sorts its clients, and is accessible, light and dark",
  ignore: !HAS_BROWSER, // only a browser knows how a page comes out
  async fn() {
    const hostile = `<img/src=x>&'"`;
    const lines = [...LINES, line(1, hostile, 2), line(2, "zebra", 100)];
    const report = await reportUsage(each(lines), OPTIONS);
    const html = usagePage(report, await judge(each(lines), [], { days: 7, now: NOW }));
    assert(!html.includes(hostile), "a client's name is taken for markup");
    const file = await Deno.makeTempFile({ suffix: ".html" });
    await Deno.writeTextFile(file, html);
    const axe = await Deno.readTextFile(new URL(import.meta.resolve("axe-core/axe.min.js")));
    await using browser = await launchBrowser();
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ colorScheme, bypassCSP: true });
      const page = await context.newPage();
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(`file://${file}`);
      const names = () => page.locator("table.clients tbody th").allInnerTexts();
      assertEquals(await names(), ["zebra", "curl", "Overcast", hostile]);
      await page.getByRole("button", { name: "Client" }).click();
      assertEquals(await names(), ["zebra", "curl", "Overcast", hostile].sort().reverse());
      await page.getByRole("button", { name: "Calls" }).click();
      await page.getByRole("button", { name: "Calls" }).click();
      assertEquals(await names(), [hostile, "Overcast", "curl", "zebra"]);
      assertEquals(await page.locator("svg rect.shade").count(), 2); // a brownout, on two routes
      await page.evaluate(axe);
      const violations = await page.evaluate(
        "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
      );
      assertEquals(violations, []);
      assertEquals(requests, [`file://${file}`]);
      await context.close();
    }
    await Deno.remove(file);
  },
});

Deno.test("media usage answers each verdict of its gate, from a real ledger", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const gate = async (...more: string[]) => {
    const { code, stdout, stderr } = await media(subject.folder, ["usage", "--gate", "2", ...more]);
    return [code, stdout || stderr] as const;
  };
  const [unknown, reason] = await gate();
  assertEquals(unknown, 3);
  assertMatch(
    reason,
    /^Unknown: no call was seen in the last 2 days, but no server was counting from\n/,
  );

  const now = Date.now();
  await ledger.beat({ server: "a", from: now - 3 * DAY, until: now }, DAY);
  assertEquals(await gate(), [
    0,
    "Clear: no deprecated route was called in the last 2 days, and servers were counting all the time.\n",
  ]);
  assertEquals((await gate("--json"))[1], '{"days":2,"verdict":"clear"}\n');

  const day = new Date(now).toISOString().slice(0, 10);
  await ledger.add([{ ...line(0, "Overcast", 12), day, first: now - 5000, last: now }], () => {});
  const [called, clients] = await gate();
  assertEquals(called, 1);
  assertMatch(
    clients,
    /^Still called in the last 2 days, by:\n {2}Overcast, last at 20/,
  );

  for (const days of ["0", "x", "1.5", "-1", "99999"]) {
    const { code, stderr } = await media(subject.folder, ["usage", "--gate", days]);
    assertEquals(code, 2, days);
    assertMatch(stderr, /Expected a number of days from 1 to 3650|unknown option/);
  }
  const report = await media(subject.folder, ["usage", "--days", "3"]);
  assertEquals([report.code, report.stderr], [0, ""]);
  assertMatch(
    report.stdout,
    /\/audio\/:token: 12 calls, new[^]*\/video\/:token: 0 calls, unchanged/,
  );
  const csv = await media(subject.folder, ["usage", "--csv"]);
  assertEquals(csv.stdout.trimEnd().split("\n").length, 2);
  const page = `${subject.folder}/report.html`;
  assertEquals((await media(subject.folder, ["usage", "--html", page])).stdout, `Wrote ${page}\n`);
  assertMatch(await Deno.readTextFile(page), /^<!DOCTYPE html>[^]*Overcast[^]*<\/html>\n$/);
  const nowhere = await media(subject.folder, [
    "usage",
    "--html",
    `${subject.folder}/no/where.html`,
  ]);
  assertEquals(nowhere.code, 1);
});

Deno.test("three processes keep one ledger: exact to the call, and a kill costs one hand-over", async () => {
  await using subject = await openLocal();
  const days = 31;
  const firstDay = new Date(Date.now() - (days - 1) * DAY).toISOString().slice(0, 10);
  const sent: Record<string, number> = {};
  const unsure: Record<string, number> = {};
  const serve = async (name: string, killAfter = Infinity) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-prompt", "--allow-all", fromRoot("tests/support/traffic.ts")],
        ...[subject.folder, name, firstDay, String(days)],
      ],
      stdout: "piped",
    }).spawn();
    let text = "";
    let killed = false;
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (killed || text.split("recorded\n").length <= killAfter) continue;
      child.kill("SIGKILL");
      killed = true;
    }
    await child.status;
    const blocks = text.split("recorded\n");
    const last = blocks.pop() ?? "";
    const add = (to: Record<string, number>, block: string) => {
      for (const [client, count] of Object.entries(JSON.parse(block) as Record<string, number>)) {
        to[client] = (to[client] ?? 0) + count;
      }
    };
    for (const block of blocks) add(sent, block);
    if (last.endsWith("\n")) add(unsure, last);
  };
  await Promise.all([serve("one"), serve("two"), serve("three", 12)]);

  const { stdout } = await media(subject.folder, ["usage", "--days", "32", "--json"]);
  const { clients } = JSON.parse(stdout) as { clients: { client: string; calls: number }[] };
  let lost = 0;
  for (const { client, calls } of clients) {
    const [least, most] = [sent[client] ?? 0, (sent[client] ?? 0) + (unsure[client] ?? 0)];
    if (!client.startsWith("three")) assertEquals(calls, least, client);
    assert(
      calls >= least && calls <= most,
      `${client}: ${calls} calls, of ${least} to ${most} sent`,
    );
    lost += most - calls;
  }
  const counted = clients.reduce((sum, { calls }) => sum + calls, 0);
  const certain = Object.values(sent).reduce((sum, count) => sum + count, 0);
  assert(counted >= certain, `${counted} counted, ${certain} handed over`);
  assert(lost <= 40, `${lost} lost, of 40 in a hand-over`);
  assertEquals(clients.filter(({ client }) => !client.startsWith("three")).length, 340);
});
