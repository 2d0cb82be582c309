/**
 * A process that publishes and unpublishes until its standard input ends. Arguments: the URL of the
 * database, and the folder. It tells each change before it begins and after it is done, a JSON line
 * each; and every token some time before it is published, so that it is asked for before.
 */

import { newToken, type Token } from "../../lib/storage/token.ts";
import { description } from "../storage/storage_suite.ts";
import { openStorage } from "../support/any_storage.ts";
import type { Status } from "../support/truth.ts";

/** What a publisher tells. */
export type Report =
  | { readonly event: "plan"; readonly token: Token }
  | { readonly event: "begin"; readonly token: Token; readonly status: Status; readonly at: number }
  | { readonly event: "end"; readonly token: Token; readonly at: number };

/** Items that are published at a time, and milliseconds between two changes at most. */
const [ITEMS, PAUSE] = [100, 150];

async function* bytes(): AsyncGenerator<Uint8Array> {
  const length = 1 + Math.floor(Math.random() * 4_000);
  yield await Promise.resolve(crypto.getRandomValues(new Uint8Array(length)));
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE));
}

async function publishUntilEnd(url: string, folder: string): Promise<void> {
  const storage = await openStorage(url, folder);
  let isEnding = false;
  const ended = Deno.stdin.readable.pipeTo(new WritableStream()).then(() => isEnding = true);
  const report = (report: Report) => console.log(JSON.stringify(report));
  const published: Token[] = [];
  while (!isEnding) {
    await pause();
    const isPublishing = Math.random() * 2 * ITEMS > published.length;
    const index = Math.floor(Math.random() * published.length);
    const [token = newToken()] = isPublishing ? [] : published.splice(index, 1);
    if (isPublishing) {
      report({ event: "plan", token });
      await pause();
    }
    const status = isPublishing ? 200 : 410;
    await using staged = isPublishing ? await storage.stage({ read: bytes }) : undefined;
    report({ event: "begin", token, status, at: Date.now() });
    if (staged === undefined) await storage.unpublish(token, Date.now());
    else await storage.publish({ ...description(), token, publishedAt: Date.now() }, staged);
    report({ event: "end", token, at: Date.now() });
    if (isPublishing) published.push(token);
  }
  await ended;
  await storage.close();
}

if (import.meta.main) await publishUntilEnd(Deno.args[0] as string, Deno.args[1] as string);
