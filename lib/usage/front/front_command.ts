/** `lifecycle front FILE` */

import { Command } from "commander";
import { readFile } from "node:fs/promises";
import { request as sendPlain } from "node:http";
import { request as sendSecure } from "node:https";
import process from "node:process";
import { requireDatabaseUrl } from "../../database/place.ts";
import { nodeRuntime } from "../../database/sqlite/node_runtime.ts";
import { ExitError } from "../../errors/exit_status.ts";
import { RefusedError } from "../../errors/refused_error.ts";
import { isLasting, NotCreatedError } from "../../errors/storage_error.ts";
import { formatInstant } from "../../http/timestamp.ts";
import { messageOf, quoted } from "../../input/printable.ts";
import { print } from "../../input/print.ts";
import { lineLog } from "../../log/log.ts";
import { openLedgerToRead } from "../record/open_ledger.ts";
import { startFront } from "./front.ts";
import { type FrontRoute, type FrontSettings, readSettings } from "./settings.ts";

/** The oldest Node whose HTTP keeps what is forwarded, and which has SQLite. */
const [LEAST_MAJOR, LEAST_MINOR] = [22, 13];

export function frontCommand(): Command {
  return new Command("front")
    .description(
      "Retire paths of a server in any language: listen in front of it, and forward everything. The" +
        " file says where, and which paths.",
    )
    .argument("<file>", "the settings, as JSON")
    .option(
      "--check",
      "say what a start would do, and ask the server behind for each path; change nothing",
    )
    .action(async (file: string, { check }: { readonly check?: true }) => {
      requireNode();
      const text = await readFile(file, "utf-8").catch((cause) => {
        throw new RefusedError(`${quoted(file)} cannot be read`, { cause });
      });
      const database = process.env["DATABASE_URL"];
      const settings = readSettings(text, { name: file, database });
      if (check) return await checkFront(settings);
      await run(settings);
    });
}

function requireNode(): void {
  const { versions: { node, bun }, version } = process;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isOther = bun !== undefined || "Deno" in globalThis;
  const isOld = major < LEAST_MAJOR || major === LEAST_MAJOR && minor < LEAST_MINOR;
  if (!isOther && !isOld) return;
  const here = isOther ? "another runtime" : `Node ${version}`;
  throw new RefusedError(
    `lifecycle front needs Node ${LEAST_MAJOR}.${LEAST_MINOR} or later; this is ${here}`,
  );
}

/** Runs the proxy until a signal to stop. A deliberate second one ends it at once. */
async function run(settings: FrontSettings): Promise<void> {
  const log = lineLog(Date.now);
  const stopped = stopSignal(); // once a session is registered, its end must be recorded
  const front = await startFront(settings, log);
  const { listen, upstream, routes } = settings;
  log({
    ...{ event: "start", listen: listen.name, upstream: upstream.url, node: process.version },
    routes: routes.map(({ name }) => name),
  });
  await stopped;
  await front.stop();
  log({ event: "stop" });
  process.exit(0); // though a database that hangs would keep the process running
}

/** Milliseconds within which signals count as one: npm and some init programs deliver one twice. */
const SAME_SIGNAL_MS = 1_000;

/** Waits for a signal to stop. One that comes later than another ends the process. */
function stopSignal(): Promise<void> {
  let first: number | undefined;
  return new Promise((resolve) => {
    for (const [signal, status] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
      process.on(signal, () => {
        const now = performance.now();
        first ??= now;
        if (now - first >= SAME_SIGNAL_MS) process.exit(status);
        resolve();
      });
    }
  });
}

/** Says what a start would do. */
async function checkFront(settings: FrontSettings): Promise<void> {
  const { listen, upstream, behindProxy, notice, routes } = settings;
  const lines = [
    `Listens on ${listen.name}${behindProxy ? ", behind a proxy that says who the client is" : ""}`,
    `Forwards to ${upstream.url}`,
    `Record: ${await recordText(settings)}`,
    `Notice: ${notice}`,
  ];
  let hasFailed = false;
  for (const route of routes) {
    const answer = await answerOf(route, settings).catch((error) => {
      hasFailed = true;
      return `the server behind does not answer (${messageOf(error)})`;
    });
    lines.push(`${route.name}: ${policyText(route)}${answer === undefined ? "" : `; ${answer}`}`);
  }
  await print(lines.join("\n"));
  if (hasFailed) throw new ExitError(1);
}

async function recordText({ database }: FrontSettings): Promise<string> {
  const place = requireDatabaseUrl(database, "database");
  const options = { setting: "database", runtime: nodeRuntime };
  try {
    const { close } = await openLedgerToRead(place, options);
    await close();
    return place.name;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.cause instanceof NotCreatedError) {
      if (place.kind === "sqlite") await requireFolder(place.path);
      return `${place.name} (does not exist yet; a start creates it)`;
    }
    if (isLasting(error)) throw error;
    return `${place.name} cannot be read now (${messageOf(error)}); a start does not wait for it`;
  }
}

async function requireFolder(path: string): Promise<void> {
  await nodeRuntime().ensureFolderOf(path).catch((error) => {
    throw new RefusedError(`database: ${error.message}`);
  });
}

function policyText({ policy, successor }: FrontRoute): string {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  return [
    `deprecated from ${formatInstant(deprecatedAt)}`,
    ...brownouts.map(({ start, end, status }) =>
      `brownout from ${formatInstant(start)} to ${formatInstant(end)} (${status})`
    ),
    sunsetAt === undefined ? "no date of removal" : `removed at ${formatInstant(sunsetAt)}`,
    ...successor === undefined ? [] : [`replaced by ${successor}`],
  ].join("; ");
}

/** Asks the server behind for a path by HEAD; `undefined` if the path has names that stand for others. */
function answerOf(
  { name, pattern }: FrontRoute,
  { upstream: { host, port, socketPath, isSecure }, timeoutMs }: FrontSettings,
): Promise<string | undefined> {
  if (pattern.names.length > 0) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const send = isSecure ? sendSecure : sendPlain;
    const path = name.replace(/[^!-~]+/g, encodeURIComponent);
    const options = { host, port, socketPath, path, method: "HEAD", agent: false as const };
    const sent = send(options, (answer) => {
      answer.resume();
      resolve(`HEAD gets ${answer.statusCode} from the server behind`);
    });
    sent.setTimeout(
      timeoutMs,
      () => sent.destroy(new Error(`nothing within ${timeoutMs / 1_000} s`)),
    );
    sent.on("error", reject).end();
  });
}
