/**
 * A server that poses as a store, with answers scripted by a test, HTTP or not: for what no real
 * store does on demand.
 */

import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import { closeConnection, ignoreEnd } from "./relay.ts";

/** Returns what to send for a request head, after which the connection is closed. */
export type Script = (head: string) => string | Promise<string>;

/** Returns a response with a length. */
export function response(status: number, fields: Record<string, string>, content = ""): string {
  const lines = Object.entries({ "Content-Length": String(content.length), ...fields });
  return `HTTP/1.1 ${status} Said\r\nConnection: close\r\n` +
    `${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${content}`;
}

/** Returns an error response like S3's. */
export function refusal(status: number, code: string): string {
  return response(status, {}, `<?xml?><Error><Code>${code}</Code><Message>x</Message></Error>`);
}

/** A store that follows a script. Disposing of it closes every connection. */
export class ScriptedStore implements AsyncDisposable {
  /** Answers the next requests. */
  script: Script = () => refusal(500, "InternalError");
  /** Whether connections stay open after the answer, until the client closes them. */
  isPatient: boolean | ((head: string) => boolean) = false;
  /** Every request head received. */
  readonly heads: string[] = [];
  /** How often something was received, sent or closed. */
  events = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #connections = new Set<Deno.TcpConn>();
  readonly #running = new Set<Promise<void>>();
  readonly #end = Promise.withResolvers<string>();

  constructor() {
    this.#run(this.#accept());
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** The settings that point to this server. */
  get settings(): BucketSettings {
    return {
      ...{ kind: "bucket", bucket: "media", prefix: "p", region: "us-east-1" },
      endpoint: `http://127.0.0.1:${this.port}`,
      ...{ accessKeyId: "key", secretAccessKey: "secret" },
      timeoutMs: 4_000,
    };
  }

  /** Connections that clients have not closed. */
  get connections(): number {
    return this.#connections.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.#end.resolve("");
    this.#connections.forEach(closeConnection);
    await Promise.all(this.#running);
  }

  #run(task: Promise<void>): void {
    this.#running.add(task);
    task.finally(() => this.#running.delete(task));
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) this.#run(this.#serve(connection));
  }

  async #serve(connection: Deno.TcpConn): Promise<void> {
    this.#connections.add(connection);
    this.events++;
    try {
      let head = "";
      const buffer = new Uint8Array(65_536);
      while (!head.includes("\r\n\r\n")) {
        const length = await connection.read(buffer);
        if (length === null) return;
        head += new TextDecoder().decode(buffer.subarray(0, length));
      }
      this.heads.push(head);
      this.events++;
      const bytes = new TextEncoder().encode(
        await Promise.race([this.script(head), this.#end.promise]),
      );
      for (let done = 0; done < bytes.length; this.events++) {
        done += await connection.write(bytes.subarray(done));
      }
      const { isPatient } = this;
      if (typeof isPatient === "function" ? isPatient(head) : isPatient) {
        while (await connection.read(buffer) !== null);
      }
    } catch (error) {
      ignoreEnd(error);
    } finally {
      closeConnection(connection);
      this.#connections.delete(connection);
      this.events++;
    }
  }
}

/** Opens content on a store with scripted answers. */
export async function withStore(
  script: Script,
  body: (content: BucketContent, store: ScriptedStore) => Promise<void>,
): Promise<void> {
  await using store = new ScriptedStore();
  store.script = script;
  const content = new BucketContent(store.settings);
  try {
    await body(content, store);
  } finally {
    await content.close();
  }
}
