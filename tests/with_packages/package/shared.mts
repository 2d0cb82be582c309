// What the programs share: the fields that each way of answering sets, counts, and a clock.

import type { LifecycleCall, RequestHead } from "@media-head/lifecycle";
import { successor } from "./policy.ts";

export const ORIGIN = "https://a.example";
export const CACHE = "max-age=864000";
export const NEXT = '</a>; rel="next"';
export const COOKIES = ["a=1", "b=2"];
export const FIELDS = { "Cache-Control": CACHE, "Link": NEXT, "Set-Cookie": COOKIES };
/** The same, for Fetch. */
export const PAIRS: [string, string][] = [
  ["Cache-Control", CACHE],
  ["Link", NEXT],
  ...COOKIES.map((cookie): [string, string] => ["Set-Cookie", cookie]),
];

export async function* parts() {
  yield "o";
  yield "ld";
}
/** Fails once its first part was sent. */
export async function* broken() {
  yield "o";
  await new Promise((resolve) => setTimeout(resolve, 50));
  throw new Error("broken");
}

/** The same, for Fetch. */
export const bytes = (parts: AsyncIterable<string>) =>
  new ReadableStream<string>({
    async start(controller) {
      try {
        for await (const part of parts) controller.enqueue(part);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
  }).pipeThrough(new TextEncoderStream());

/** Answers an upgrade to a WebSocket, which the types of neither runtime are here to tell. */
export function upgrade(request: Request): Response {
  const { Deno, WebSocketPair } = globalThis as unknown as Runtime;
  if (Deno !== undefined) return Deno.upgradeWebSocket(request).response;
  const [client, server] = Object.values(new WebSocketPair());
  server?.accept();
  return new Response(null, { status: 101, webSocket: client } as ResponseInit);
}
type Runtime = {
  Deno?: { upgradeWebSocket(request: Request): { response: Response } };
  WebSocketPair: new () => Record<string, { accept(): void }>;
};

const calls: LifecycleCall[] = [];
export const options = {
  successor,
  route: ({ url }: RequestHead) => new URL(url).pathname,
  onCount: (call: LifecycleCall) => void calls.push(call),
};

/** Sets the clock to the number in the query, and returns the calls since the last time. */
export function control(url: string): string {
  const now = Number(/\?(\d+)/.exec(url)?.[1]);
  Date.now = () => now;
  return JSON.stringify(calls.splice(0));
}
