/**
 * A process that publishes and unpublishes until its standard input ends. Arguments: the URL of the
 * database, and the folder. It prints a JSON line before and after each change, and every token
 * some time before it is published, so that it is requested before.
 */

import { newToken, type Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openStorage } from "../support/any_storage.ts";
import type { Status } from "../support/truth.ts";

/** What a publisher prints. */
export type Report =
  | { readonly event: "plan"; readonly token: Token }
  | { readonly event: "begin"; readonly token: Token; readonly status: Status; readonly at: number }
  | { readonly event: "end"; readonly token: Token; readonly at: number };

/** Items published at a time, and the maximum of milliseconds between changes. */
const [ITEMS, PAUSE] = [100, 150];

/**
 * Short content, which the server caches, or longer content, which it reads at once or as a stream.
 */
function content(): Uint8Array<ArrayBuffer> {
  const most = Math.random() < 0.8 ? 4_000 : 400_000;
  const bytes = new Uint8Array(1 + Math.floor(Math.random() * most));
  for (let at = 0; at < bytes.length; at += 65_536) { // as much as there is at a time
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  return bytes;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
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
    const bytes = content();
    const source = { read: () => once(bytes) };
    await using staged = isPublishing ? await storage.stage(source) : undefined;
    report({ event: "begin", token, status, at: Date.now() });
    if (staged === undefined) await storage.unpublish(token, Date.now());
    else await storage.publish({ ...newMetadata(), token, publishedAt: Date.now() }, staged);
    report({ event: "end", token, at: Date.now() });
    if (isPublishing) published.push(token);
  }
  await ended;
  await storage.close();
}

if (import.meta.main) await publishUntilEnd(Deno.args[0] as string, Deno.args[1] as string);
