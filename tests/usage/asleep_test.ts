/** The gate where a server sleeps until it is asked: its probe starts one, which it then finds. */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { requireDatabaseUrl } from "../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { ExitError } from "../../lib/errors/exit_status.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { usageCommand, type UsageSource } from "../../lib/usage/usage_command.ts";
import { ANSWER, PROCESS } from "../support/counted_call.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { DAY, HOUR, reasonsIn, SOURCE } from "../support/usage_report.ts";

const [CLEAR, UNKNOWN] = [0, 3];

/** Opens the ledger in a file. */
const open = (file: string) =>
  openLedger(requireDatabaseUrl(`sqlite:${file}`, "test"), { runtime: () => DENO_RUNTIME });

/** Asks the gate, if there is a URL with a probe. */
async function ask(
  file: string,
  probe: UsageSource["probe"],
  ...words: string[]
): Promise<[status: number, text: string]> {
  const { ledger, close } = await open(file);
  let text = "";
  const command = usageCommand({
    print: (part) => Promise.resolve(void (text += `${part}\n`)),
    printError: (part) => text += `${part}\n`,
    withSource: (_, action) => action({ ...SOURCE, ledger, probe }),
  });
  try {
    await command.parseAsync(["--gate", "1", ...words], { from: "user" });
  } catch (error) {
    if (error instanceof ExitError) return [error.status, text];
    throw error;
  } finally {
    await close();
  }
  throw new Error("The gate has no verdict");
}

/** What the gate can probe, and the requests that it sends. */
const ROWS: readonly (readonly [
  what: string,
  path: string | undefined,
  requests: readonly string[],
])[] = [
  ["with an item to probe", "/audio/x", ["GET", "GET", "GET", "HEAD", "HEAD"]],
  ["with none", undefined, ["HEAD"]],
];

for (const [what, path, requests] of ROWS) {
  needing("processes")(
    `the gate finds the server that it has woken, ${what}`,
    () =>
      inFolder(async (folder) => {
        const file = `${folder}/calls`;
        const { ledger, close } = await open(file);
        const recorderOf = () =>
          new Recorder({
            ledger,
            policies: { [ANSWER.route]: definePolicy({ deprecatedAt: "2026-01-01" }) },
            process: PROCESS,
            retainDays: 400,
            clock: Date.now,
            log() {},
          });
        // It ran for three days, and went to sleep an hour ago.
        const before = recorderOf();
        await before.start();
        await before.stop();
        {
          using database = new DatabaseSync(file);
          const ago = (time: number) => `began - ${time}`;
          database.exec(
            `UPDATE media_head_session SET began = ${ago(3 * DAY)}, reported = ${ago(HOUR)};
           UPDATE media_head_ledger SET started = started - ${3 * DAY}`,
          );
        }
        const [alone, json] = await ask(file, undefined, "--trust-stops", "--json");
        assertEquals([alone, reasonsIn(json)], [UNKNOWN, ["no server"]], json);

        const sent: string[] = [];
        let woken: Recorder | undefined;
        const server = Deno.serve(
          { hostname: "127.0.0.1", port: 0, onListen() {} },
          async (request) => {
            sent.push(request.method);
            if (woken === undefined) await (woken = recorderOf()).start();
            const { pathname } = new URL(request.url);
            if (pathname === path) {
              woken.meter.counterFor({ ...ANSWER, method: request.method }).count(request.headers);
            }
            return new Response(null);
          },
        );
        const url = `http://127.0.0.1:${server.addr.port}`;
        const urlOf = () => Promise.resolve(path && url + path);
        const [status, found] = await ask(file, { url, urlOf }, "--trust-stops");
        assertEquals([status, sent], [CLEAR, requests], found);
        assertMatch(found, /^Clear, on your word .* 1 stop \(1 h 0 min\) /);
        assertEquals(found.includes(" A probe of /audio/:token "), path !== undefined, found);
        await server.shutdown();
        await woken?.stop();
        await close();
      }),
  );
}
