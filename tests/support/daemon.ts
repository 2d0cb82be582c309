/** A program of Debian that listens on a free port and keeps its files in a temporary folder. */

import { UNTIL_END_OF_INPUT } from "./child.ts";
import { pathOf } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";
import { until, within } from "./within.ts";

/** How to run a program. */
export interface Setup {
  readonly args: readonly string[];
  /** Files to make first, by their paths in the folder. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
}

/** A running program. Disposing of it ends it and removes its folder. */
export class Daemon implements AsyncDisposable {
  private constructor(
    readonly port: number,
    /** World-writable, since most programs drop root privileges. */
    readonly folder: string,
    private readonly child: Deno.ChildProcess,
    private readonly stderr: Promise<string>,
  ) {}

  /**
   * Starts a program and waits until it accepts connections.
   *
   * @throws When it exits instead, with its output.
   */
  static async start(
    program: string,
    setup: (place: { readonly port: number; readonly folder: string }) => Setup,
  ): Promise<Daemon> {
    const folder = await Deno.makeTempDir({ prefix: `media-head-${program}-` });
    await Deno.chmod(folder, 0o777);
    const port = freePort();
    const { args, files = {} } = setup({ port, folder });
    for (const [path, content] of Object.entries(files)) {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      await Deno.writeFile(`${folder}/${path}`, bytes);
    }
    const child = new Deno.Command("sh", {
      args: ["-c", UNTIL_END_OF_INPUT, pathOf(program) ?? program, ...args],
      stdin: "piped",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const daemon = new Daemon(port, folder, child, new Response(child.stderr).text());
    let hasEnded = false;
    child.status.then(() => hasEnded = true);
    try {
      await until(`${program} to listen`, async () => hasEnded || await accepts(port));
      if (!hasEnded) return daemon;
      throw new Error(`${program} ended:\n${await daemon.stderr}`);
    } catch (error) {
      await daemon[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.stdin.close();
    await within("the end of a program", Promise.all([this.child.status, this.stderr]));
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Returns how to run nginx in a folder, given what to put into its `http` block. */
export function nginx(folder: string, http: string): Setup {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${kind};`).join(" ");
  return {
    args: ["-e", "stderr", "-p", folder, "-c", `${folder}/nginx.conf`],
    files: {
      "nginx.conf": `daemon off; pid nginx.pid; error_log stderr; events {}
        http { access_log off; ${temporary} ${http} }`,
    },
  };
}
