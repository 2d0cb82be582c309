/**
 * nginx as packaged by Debian, as the web server or CDN that already has the content.
 */

import { pathOf } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";

/** A running server of files. Disposing of it ends it and removes its folder. */
export class Cdn implements AsyncDisposable {
  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly child: Deno.ChildProcess,
  ) {}

  /**
   * Starts it, and waits until it accepts connections.
   *
   * @param files The content, by name. Pages of any origin may read it and set any field at
   *   `/open/NAME`, but not at `/NAME`.
   */
  static async start(files: Readonly<Record<string, Uint8Array>>): Promise<Cdn> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-cdn-" });
    await Deno.chmod(folder, 0o755); // it drops root privileges
    await Deno.mkdir(`${folder}/www`);
    for (const [name, bytes] of Object.entries(files)) {
      await Deno.writeFile(`${folder}/www/${name}`, bytes);
    }
    const port = freePort();
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(" ");
    await Deno.writeTextFile(
      `${folder}/nginx.conf`,
      `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
      events {}
      http {
        types { audio/mpeg mp3; audio/wav wav; video/mp4 mp4; }
        log_format asked '$request_method $uri $status range=$http_range origin=$http_origin';
        access_log ${folder}/access.log asked;
        ${temporary}
        server {
          listen 127.0.0.1:${port};
          root ${folder}/www;
          location /open/ {
            alias ${folder}/www/;
            add_header Access-Control-Allow-Origin * always;
            add_header Access-Control-Expose-Headers * always;
            if ($request_method = OPTIONS) {
              add_header Access-Control-Allow-Origin *;
              add_header Access-Control-Allow-Headers *;
              return 204;
            }
          }
        }
      }`,
    );
    const child = new Deno.Command(pathOf("nginx") ?? "nginx", {
      args: ["-e", `${folder}/error.log`, "-p", folder, "-c", `${folder}/nginx.conf`],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const cdn = new Cdn(folder, port, child);
    let hasEnded = false;
    child.status.then(() => hasEnded = true);
    while (!await accepts(port)) {
      if (hasEnded) {
        const said = await Deno.readTextFile(`${folder}/error.log`);
        await cdn.#remove();
        throw new Error(`nginx ended:\n${said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return cdn;
  }

  /** Returns the URL of a path. */
  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Returns the requests so far: method, path, status, and two request fields. */
  async requests(): Promise<string[]> {
    return (await Deno.readTextFile(`${this.folder}/access.log`)).split("\n").slice(0, -1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGTERM");
    await this.#remove();
  }

  async #remove(): Promise<void> {
    await this.child.status;
    await Deno.remove(this.folder, { recursive: true });
  }
}
