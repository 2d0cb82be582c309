/** nginx as packaged by Debian, as the web server or CDN that already has the content. */

import { Daemon, nginx } from "./daemon.ts";

/** A running server of files. Disposing of it ends it and removes its folder. */
export class Cdn implements AsyncDisposable {
  private constructor(private readonly daemon: Daemon) {}

  /**
   * Starts it, and waits until it accepts connections.
   *
   * @param files The content, by name. Pages of any origin may read it, set any field and embed it
   *   at `/open/NAME`, but not at `/NAME`.
   */
  static async start(files: Readonly<Record<string, Uint8Array>>): Promise<Cdn> {
    const daemon = await Daemon.start("nginx", ({ port, folder }) => {
      const { args, files: configuration } = nginx(
        folder,
        `types { audio/mpeg mp3; audio/wav wav; video/mp4 mp4; }
        log_format asked '$request_method $uri $status range=$http_range origin=$http_origin';
        server {
          access_log access.log asked;
          listen 127.0.0.1:${port};
          root ${folder};
          location /open/ {
            alias ${folder}/;
            add_header Access-Control-Allow-Origin * always;
            add_header Access-Control-Expose-Headers * always;
            add_header Cross-Origin-Resource-Policy cross-origin always;
            if ($request_method = OPTIONS) {
              add_header Access-Control-Allow-Origin *;
              add_header Access-Control-Allow-Headers *;
              return 204;
            }
          }
        }`,
      );
      return { args, files: { ...files, ...configuration } };
    });
    return new Cdn(daemon);
  }

  /** Returns the URL of a path. */
  url(path: string): string {
    return `http://127.0.0.1:${this.daemon.port}${path}`;
  }

  /** Returns the requests so far: method, path, status, and two request fields. */
  async requests(): Promise<string[]> {
    const log = await Deno.readTextFile(`${this.daemon.folder}/access.log`);
    return log.split("\n").slice(0, -1);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.daemon[Symbol.asyncDispose]();
  }
}
