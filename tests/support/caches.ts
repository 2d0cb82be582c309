/**
 * Caches as packaged by Debian, each in front of one server. Only addresses and files are
 * configured; everything else is the default.
 */

import { pathOf } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";

/** A cache that can be put in front of a server. */
interface CacheProgram {
  /** Its executable. */
  readonly program: string;
  /** Its arguments, and its files by name. */
  readonly setup: (place: Place) => {
    readonly args: readonly string[];
    readonly files?: Readonly<Record<string, string>>;
  };
}

/** Where a cache listens, forwards to and keeps its files. */
interface Place {
  /** Where it listens. */
  readonly port: number;
  /** Where the server listens. */
  readonly origin: number;
  /** A world-writable folder of its own: most caches drop root privileges. */
  readonly folder: string;
}

const PROGRAMS = {
  varnish: {
    program: "varnishd",
    setup: ({ port, origin, folder }) => ({
      args: ["-F", "-n", `${folder}/n`, "-a", `127.0.0.1:${port}`, "-b", `127.0.0.1:${origin}`],
    }),
  },
  nginx: {
    program: "nginx",
    setup: ({ port, origin, folder }) => ({
      args: ["-e", "stderr", "-p", folder, "-c", `${folder}/nginx.conf`],
      files: {
        "nginx.conf": `
          daemon off; pid nginx.pid; error_log stderr;
          events {}
          http {
            access_log off;
            ${
          ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map((kind) => `${kind}_temp_path ${kind};`).join(" ")
        }
            proxy_cache_path cache keys_zone=all:1m;
            server {
              listen 127.0.0.1:${port};
              location / { proxy_pass http://127.0.0.1:${origin}; proxy_cache all; }
            }
          }`,
      },
    }),
  },
  squid: {
    program: "squid",
    setup: ({ port, origin, folder }) => ({
      args: ["-N", "-n", `on${port}`, "-f", `${folder}/squid.conf`],
      files: {
        "squid.conf": [
          `http_port 127.0.0.1:${port} accel defaultsite=test no-vhost`,
          `cache_peer 127.0.0.1 parent ${origin} 0 no-query originserver`,
          "http_access allow all",
          `pid_filename ${folder}/squid.pid`,
          `cache_log ${folder}/cache.log`,
          "access_log none",
          `coredump_dir ${folder}`,
          "pinger_enable off",
          "netdb_filename none",
          "shutdown_lifetime 0 seconds",
        ].join("\n") + "\n",
      },
    }),
  },
  trafficserver: {
    program: "traffic_server",
    setup: ({ port, origin, folder }) => ({
      args: [`--run-root=${folder}/runroot.yaml`],
      files: {
        "runroot.yaml": [
          ...["prefix", "exec_prefix", "sysconfdir", "datadir", "localstatedir", "runtimedir"],
          ...["logdir", "cachedir", "bindir", "sbindir", "includedir", "libdir", "libexecdir"],
        ].map((name) => `${name}: ${folder}\n`).join(""),
        "records.config": [
          `CONFIG proxy.config.http.server_ports STRING ${port}:ip-in=127.0.0.1`,
          // It refuses to run as root.
          `CONFIG proxy.config.admin.user_id STRING ${Deno.uid() === 0 ? "nobody" : "#-1"}`,
        ].join("\n") + "\n",
        "remap.config": `map / http://127.0.0.1:${origin}/\n`,
        "storage.config": `${folder} 32M\n`,
        "ip_allow.yaml":
          "ip_allow: [{apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}]\n",
      },
    }),
  },
} satisfies Record<string, CacheProgram>;

/** The name of a cache. */
export type CacheName = keyof typeof PROGRAMS;

/** Every cache with a setup here. */
export const CACHES = Object.keys(PROGRAMS) as CacheName[];

/** The executable of a cache. */
export function programOf(name: CacheName): string {
  return PROGRAMS[name].program;
}

/** A running cache. Disposing of it ends it and removes its files. */
export class CacheProcess implements AsyncDisposable {
  private constructor(
    readonly name: CacheName,
    readonly port: number,
    private readonly folder: string,
    private readonly child: Deno.ChildProcess,
    private readonly stderr: Promise<string>,
  ) {}

  /**
   * Starts a cache and waits until it accepts connections.
   *
   * @param origin The port of the server behind it.
   * @throws When it exits instead, with its output.
   */
  static async start(name: CacheName, origin: number): Promise<CacheProcess> {
    const { program, setup }: CacheProgram = PROGRAMS[name];
    const folder = await Deno.makeTempDir({ prefix: `media-head-${name}-` });
    await Deno.chmod(folder, 0o777);
    const port = freePort();
    const { args, files = {} } = setup({ port, origin, folder });
    for (const [file, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${file}`, text);
    }
    const child = new Deno.Command(pathOf(program) ?? program, {
      args: [...args],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const stderr = new Response(child.stderr).text();
    const cache = new CacheProcess(name, port, folder, child, stderr);
    let hasEnded = false;
    child.status.then(() => hasEnded = true);
    while (!await accepts(port)) {
      if (hasEnded) {
        await cache.#remove();
        throw new Error(`${name} ended:\n${await stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return cache;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGTERM");
    const impatience = setTimeout(() => this.child.kill("SIGKILL"), 5000);
    await this.#remove();
    clearTimeout(impatience);
  }

  async #remove(): Promise<void> {
    await this.child.status;
    await this.stderr;
    await Deno.remove(this.folder, { recursive: true });
  }
}
