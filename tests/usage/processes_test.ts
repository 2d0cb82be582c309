import { assert, assertEquals } from "@std/assert";
import { reportUsage } from "../../lib/report/report.ts";
import { openLocal } from "../support/local_storage.ts";
import { media } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { DAY, MINUTE, POLICIES } from "../support/usage_report.ts";

const test = needing("processes");

test("a server process registers before it answers, and a killed one counts as silent", async () => {
  const { markGone } = await import("../../lib/cli/usage_gone.ts");
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const judge = async () => {
    const now = Date.now();
    await ledger.recordHeartbeat({ server: "covers", policies: POLICIES, from: 0, until: now });
    return (await reportUsage(ledger, { routes: [], days: 1, now })).verdict;
  };
  const known = async () => (await ledger.heartbeats()).map(({ server }) => server);
  {
    await using killed = await ServerProcess.start({}, subject.folder);
    await requestRaw(killed.port, "HEAD", "/audio/x");
    const [server] = await known();
    await killed.stop("SIGKILL");
    const verdict = await judge(); // at once
    assert(verdict.verdict === "unknown");
    assertEquals(verdict.gaps.map(({ reason }) => reason), ["silent"]);
    await markGone(ledger, [server as string], Date.now() + 2 * MINUTE);
  }
  await using stopped = await ServerProcess.start({}, subject.folder);
  await stopped.stop();
  assertEquals((await judge()).verdict, "clear");
  assertEquals((await ledger.heartbeats()).map(({ end }) => end), [undefined, "gone", "stopped"]);
});

test("three processes share one ledger: counts are exact, and a kill loses at most one flush", async () => {
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
  for (const { client: name, calls } of clients) {
    const client = name.replace("app ", "");
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
  assert(counted >= certain, `${counted} counted, ${certain} flushed`);
  assert(lost <= 40, `${lost} lost, of 40 in a flush`);
  assertEquals(clients.filter(({ client }) => !client.startsWith("app three")).length, 340);
});
