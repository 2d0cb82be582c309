/** The gate where an application sleeps until it is asked: on demand, or woken by the gate's probe. */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage, type Usage } from "../../lib/usage/mod.ts";
import { askVerdict, CLEAR, UNKNOWN } from "../support/gate.ts";
import { testsInFolder } from "../support/media_cli.ts";

const test = testsInFolder("files", "network");

const [HALF_HOUR, DAY] = [1_800_000, 86_400_000];

const POLICY = definePolicy({ deprecatedAt: "2026-01-01" });

/** Has an application run for three days, and stop some time ago, by a word or without one. */
async function ranBefore(
  path: string,
  { ago, isStopped, onDemand }: { ago: number; isStopped: boolean; onDemand: boolean },
): Promise<void> {
  const usage = await openUsage(`sqlite:${path}`, {
    routes: { "/v1": POLICY },
    onDemand,
    log() {},
  });
  usage.retire("/v1");
  await usage.close();
  using database = new DatabaseSync(path);
  database.exec(
    `UPDATE media_head_session SET began = began - ${3 * DAY}, reported = began - ${ago},
       written = began - ${ago}, ended = ${isStopped ? "'stopped'" : "NULL"}`,
  );
}

test("an application on demand is clear while it sleeps, however it fell asleep", async (folder) => {
  for (const isStopped of [true, false]) {
    const path = `${folder}/${isStopped}`;
    await ranBefore(path, { ago: HALF_HOUR, isStopped, onDemand: true });
    const { status, text, json } = await askVerdict(`sqlite:${path}`);
    assertEquals(status, CLEAR, text);
    assertEquals(json.gaps.map(({ kind }) => kind), isStopped ? [] : ["silent"], text);
  }
});

test("the gate finds the application that its probe has woken", async (folder) => {
  const path = `${folder}/calls`;
  await ranBefore(path, { ago: HALF_HOUR, isStopped: true, onDemand: false });
  const alone = await askVerdict(`sqlite:${path}`);
  const causes = alone.json.verdicts.flatMap(({ causes }) => causes.map(({ cause }) => cause));
  assertEquals([alone.status, causes], [UNKNOWN, ["no process"]], alone.text);

  const sent: string[] = [];
  let woken: Usage | undefined;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      sent.push(request.method);
      woken ??= await openUsage(`sqlite:${path}`, { routes: { "/v1": POLICY }, log() {} });
      return await woken.withLifecycle(() => new Response("old"), "/v1")(request);
    },
  );
  const probe = ["--probe", `http://127.0.0.1:${server.addr.port}/v1/a`];
  const { status, text, json } = await askVerdict(`sqlite:${path}`, ...probe);
  assertEquals(status, CLEAR, text);
  assertEquals(sent.slice(0, 5), ["GET", "GET", "GET", "HEAD", "HEAD"]);
  assertEquals(json.gaps.map(({ kind }) => kind), ["stop"]);
  assertMatch(text, /^Not on record: \S+ to \S+ \(30 min\), when no process ran\. /m);
  assertMatch(text, / A probe of \/v1 /);
  await server.shutdown();
  await woken?.close();
});
