import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { CommanderError } from "commander";
import { RefusedError, WrongUsageError } from "../../lib/errors/refused_error.ts";
import { formatInstant } from "../../lib/http/timestamp.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { holdCommand } from "../../lib/usage/hold_command.ts";
import { DAY, NOON, PROCESS } from "../support/counted_call.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { openScene } from "../support/recorder_scene.ts";

const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"];
/** What is said where no process runs. */
const FOLLOWING = "No process reports now; each will follow when it does";

const POLICIES = {
  [AUDIO]: definePolicy({
    deprecatedAt: "2027-01-01",
    brownouts: ["2027-02-01T11:00Z/PT4H", "2027-02-02T11:00Z/PT1H"],
    sunsetAt: "2027-06-30",
  }),
  [VIDEO]: definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-01-31" }),
};

/** A record at noon of 2027-02-01, with the command that holds its routes. */
async function openRecord({ isNew = false, policies = POLICIES } = {}) {
  const scene = await openScene();
  if (!isNew) await (await scene.start({ policies })).stop();
  return {
    ...scene,
    /** Runs the command. Returns what it prints, or its error with the exit status. */
    async run(...args: string[]): Promise<string> {
      let printed = "";
      const command = holdCommand({
        withLedger: (_, action) => action(scene.ledger, "CACHE_MAX_AGE"),
        print: (text) => Promise.resolve(printed += text).then(() => {}),
        printError: (text) => printed += `${text}\n`,
      }).exitOverride().configureOutput({ writeErr: (text) => printed += text });
      try {
        await scene.timers.during(command.parseAsync(args, { from: "user" }));
        return printed;
      } catch (error) {
        if (error instanceof CommanderError) return `2: ${printed.trimEnd()}`;
        if (error instanceof WrongUsageError) return `2: ${error.message}`;
        if (error instanceof RefusedError) return `1: ${error.message}`;
        throw error;
      }
    },
  };
}

Deno.test("hold says what it calls off, lists it, and releases it", async () => {
  await using record = await openRecord();
  const { run } = record;
  assertEquals(await run(), "No hold is on record");
  assertEquals(await run("--route", "/nothing"), 'No hold on "/nothing" is on record');
  assertEquals((await run("--until", "2027-02-02", "--because", " billing is down ")).split("\n"), [
    "Held until 2027-02-03T00:00:00Z (billing is down): all routes",
    "/audio/:token: the brownout from 2027-02-01T12:00:00Z to 2027-02-01T15:00:00Z was called off",
    "/audio/:token: the brownout from 2027-02-02T11:00:00Z to 2027-02-02T12:00:00Z was called off",
    "/video/:token: the sunset at 2027-01-31T00:00:00Z was put off until then",
    "/video/:token: caches may keep the 410 or 308 that they have stored since the sunset, for CACHE_MAX_AGE",
    FOLLOWING,
  ]);
  await record.pass(DAY / 2);
  assertEquals(
    (await run("--until", "2027-02-02T12:30+01:00", "--because", "b", "--route", AUDIO))
      .split("\n"),
    [
      "Held until 2027-02-02T11:30:00Z (b): /audio/:token",
      "/audio/:token: no brownout and no sunset was due until then",
      FOLLOWING,
    ],
  );
  const all = "all routes from 2027-02-01T12:00:00Z to 2027-02-03T00:00:00Z (billing is down)";
  const one = "/audio/:token from 2027-02-02T00:00:00Z to 2027-02-02T11:30:00Z (b)";
  assertEquals(await run(), `${all}\n${one}`);
  assertEquals(await run("--route", VIDEO), all);
  await record.pass(11.5 * 3_600_000 - 1);
  assertEquals(await run("--release", "--route", AUDIO), `Released: ${one}\n${FOLLOWING}`);
  assertEquals(
    await run("--release", "--route", AUDIO),
    `1: No hold on "${AUDIO}" is in effect; to release the hold on all routes, leave out --route`,
  );
  assertEquals((await run("--release")).split("\n"), [
    `Released: ${all}`,
    "/audio/:token: in a brownout until 2027-02-02T12:00:00Z",
    "/video/:token: removed",
    FOLLOWING,
  ]);
  assertEquals(
    (await run()).split("\n"),
    [all, one].map((line) => `${line}, released at 2027-02-02T11:29:59Z`),
  );
  assertEquals(await run("--release"), "1: No hold is in effect");
  assertEquals(await run("--release", "--route", VIDEO), `1: No hold on "${VIDEO}" is in effect`);
  await run("--until", "2027-02-03", "--because", "b", "--route", AUDIO);
  assertEquals(
    await run("--release", "--route", "/audio"),
    `1: No hold on "/audio" is in effect; expected "${AUDIO}"`,
  );
});

Deno.test("hold of a route holds its parts, too, and a hold of a part only that", async () => {
  const [ALL, ACME] = ["/v1", "/v1 for acme"];
  const policy = definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-01-31" });
  const policies = { [ALL]: policy, [ACME]: policy, "/v1/songs": policy };
  await using scene = await openRecord({ policies: policies as typeof POLICIES });
  const until = ["--until", "2027-02-02", "--because", "b"];
  const put = (name: string) =>
    `${name}: the sunset at 2027-01-31T00:00:00Z was put off until then`;
  const effects = async (route: string) =>
    (await scene.run(...until, "--route", route)).split("\n")
      .filter((line) => line.includes("put off"));
  assertEquals(await effects(ACME), [put(ACME)]);
  await scene.run("--release", "--route", ACME);
  await scene.pass(1_000);
  assertEquals(await effects(ALL), [put(ALL), put(ACME)]);
  assertMatch(await scene.run("--route", ACME), /^\/v1 for acme .*\n\/v1 from /);
  const { recorder, stop } = await scene.start({ policies });
  const sunsets = Object.values(recorder.policies).map(({ sunsetAt = 0 }) => sunsetAt);
  assertEquals(sunsets.map((sunset) => sunset > NOON), [true, true, false], "in a process");
  await stop();
  assertEquals(
    (await scene.run("--release", "--route", ALL)).split("\n").slice(1, 3),
    [`${ALL}: removed`, `${ACME}: removed`],
  );
});

Deno.test("hold says which processes have followed, after six seconds at most", async () => {
  await using record = await openRecord();
  const until = ["--until", "2027-02-02", "--because", "b"];
  const linesOf = async (...args: string[]) => {
    const start = record.clocks.database;
    const text = await record.run(...args);
    const lines = text.split("\n").filter((line) => /follow|^Not yet/.test(line));
    return [record.clocks.database - start, ...lines];
  };
  const [first, second] = [
    await record.start({ policies: POLICIES }),
    await record.start({ policies: POLICIES, process: { ...PROCESS, pid: 12 } }),
  ];
  const [took, ...lines] = await linesOf(...until);
  assertEquals(lines, ["2 processes have followed"]);
  assert(took as number <= 5_000 + 200, `${took}`);
  for (const { recorder } of [first, second]) {
    assertEquals(recorder.policies[VIDEO]?.sunsetAt, Date.parse("2027-02-03"), "put off");
  }
  assertEquals((await linesOf("--release")).slice(1), ["2 processes have followed"]);

  // A call brings a heartbeat, and with it the hold.
  const calling = linesOf(...until);
  first.call();
  second.call();
  const [soon, ...both] = await calling;
  assertEquals(both, ["2 processes have followed"]);
  assert(soon as number <= 1_400, `${soon}`);
  await linesOf("--release");

  // Whoever does not write has not read it.
  record.faults.write = "away";
  const [wait, ...nobody] = await linesOf(...until);
  const last = (pid: number, id: string, at: string) =>
    `Not yet: session ${id} (process ${pid} on web-1, started at 2027-01-31T12:00:00Z), which last wrote at ${at}`;
  const sessions = (await record.ledger.sessions()).filter(({ ended }) => ended === undefined);
  assertEquals(
    nobody,
    sessions.map(({ id, process, written }) => last(process.pid, id, formatInstant(written))),
  );
  assertEquals([wait, nobody.length], [6_000, 2]);
  record.faults.write = undefined;
  await record.pass(5_000);
  assertEquals((await linesOf("--release")).slice(1), ["2 processes have followed"]);
  await first.stop();
  await second.stop();
  assertEquals((await linesOf(...until)).slice(1), [FOLLOWING]);
});

Deno.test("hold refuses what is wrong, by name and value, and records nothing", async () => {
  await using record = await openRecord();
  const reason = ["--because", "b"];
  const until = ["--until", "2027-02-02"];
  const latest = new Date(NOON + 90 * DAY).toISOString().replace(".000", "");
  const table: [args: string[], message: RegExp | string][] = [
    [["--until", "tomorrow", ...reason], /^2: .*argument 'tomorrow' is invalid\. Expected a date/],
    [["--until", "2027-02-30", ...reason], /^2: .*'2027-02-30' is invalid/],
    [["--until", "2027-02-02T12:00", ...reason], /^2: .*'2027-02-02T12:00' is invalid/],
    [
      ["--until", "2027-01-31", ...reason],
      '2: --until "2027-01-31": expected an end after 2027-02-01T12:00:00Z, now',
    ],
    [
      ["--until", "2027-02-01T12:00Z", ...reason],
      '2: --until "2027-02-01T12:00Z": expected an end after 2027-02-01T12:00:00Z, now',
    ],
    [
      ["--until", "2027-05-02T12:00:01Z", ...reason],
      `2: --until "2027-05-02T12:00:01Z": expected at most 90 days ahead, until ${latest}`,
    ],
    [until, /^2: error: option '--until <instant>' needs '--because <reason>'$/],
    [reason, /^2: error: option '--because <reason>' needs '--until <instant>'$/],
    [[...until, "--because", " "], /^2: .*argument ' ' is invalid\. Expected a reason of 1 to 200/],
    [[...until, "--because", "x".repeat(201)], /^2: .*is invalid\. Expected a reason/],
    [[...until, "--because", "a\nb"], /^2: [^]*is invalid\. Expected a reason/],
    [
      [...until, ...reason, "--route", "/audio"],
      `2: --route "/audio": expected "${AUDIO}" or "${VIDEO}"`,
    ],
    [[...until, ...reason, "--release"], /^2: error: option '--release' cannot be used with/],
  ];
  for (const [args, message] of table) {
    const got = await record.run(...args);
    if (typeof message === "string") assertEquals(got, message);
    else assertMatch(got, message, args.join(" "));
  }
  assertEquals(await record.run(), "No hold is on record");
  const last = await record.run("--until", latest, ...reason);
  assert(last.startsWith(`Held until ${latest} (b)`), last);
});

Deno.test("hold of one route needs a record of it; a hold of all does not", async () => {
  await using record = await openRecord({ isNew: true });
  const args = ["--until", "2027-02-02", "--because", "b"];
  assertEquals(
    await record.run(...args, "--route", AUDIO),
    `2: --route "${AUDIO}": expected none, since no process has announced a route yet`,
  );
  assertStringIncludes(await record.run(...args), "all routes");
  const { recorder, stop } = await record.start({ policies: POLICIES });
  assertEquals(recorder.policies[AUDIO]?.brownouts.length, 1);
  await stop();
});

needing("files")("hold prints what the operators' README says", async () => {
  const readme = await Deno.readTextFile(fromRoot("lib/server/README.md"));
  const block = /\$ deno task --quiet media hold (.*)\n([^`]*)```/;
  const [, typed = "", printed = ""] = block.exec(readme) ?? [];
  const { [AUDIO]: policy } = POLICIES;
  const brownouts = policy?.brownouts.slice(0, 1);
  const short = { ...policy, brownouts } as Policy;
  const policies = { [AUDIO]: short, [VIDEO]: short };
  await using record = await openRecord({ policies });
  const running = [await record.start({ policies }), await record.start({ policies })];
  const words = typed.replace(/\d{4}-\d\d-\d\d/, "2027-02-02").match(/"[^"]*"|\S+/g) ?? [];
  const shapeOf = (text: string) => text.trimEnd().replaceAll(/\d+/g, "0");
  const said = await record.run(...words.map((word) => word.replaceAll('"', "")));
  assertEquals(shapeOf(said), shapeOf(printed));
  assert(words.length > 0);
  for (const { stop } of running) await stop();
});
