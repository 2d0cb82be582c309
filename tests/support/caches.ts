/**
 * Caches as packaged by Debian, each in front of one server. Only addresses and files are
 * configured; everything else is the default.
 */

import { Daemon, nginx, type Setup } from "./daemon.ts";
import { type Need, program } from "./permissions.ts";

/** Where a cache listens, forwards to and keeps its files. */
interface Place {
  readonly port: number;
  /** The port of the server behind it. */
  readonly origin: number;
  readonly folder: string;
}

/** Every cache: its executable, the compiler that this runs, and how to run it. */
const PROGRAMS = {
  varnish: {
    program: "varnishd",
    compiler: "gcc",
    setup: ({ port, origin, folder }) => ({
      args: ["-F", "-n", `${folder}/n`, "-a", `127.0.0.1:${port}`, "-b", `127.0.0.1:${origin}`],
    }),
  },
  nginx: {
    program: "nginx",
    setup: ({ port, origin, folder }) =>
      nginx(
        folder,
        `access_log off;
        proxy_cache_path cache keys_zone=all:1m;
        server {
          listen 127.0.0.1:${port};
          location / { proxy_pass http://127.0.0.1:${origin}; proxy_cache all; }
        }`,
      ),
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
} satisfies Record<string, { program: string; compiler?: string; setup: (place: Place) => Setup }>;

/** The name of a cache. */
export type CacheName = keyof typeof PROGRAMS;

/** Every cache with a setup here. */
export const CACHES = Object.keys(PROGRAMS) as CacheName[];

/** What tests with a cache need. */
export function needsOf(name: CacheName): Need[] {
  const { program: cache, ...others } = PROGRAMS[name];
  return ["processes", program(cache), ...("compiler" in others ? [program(others.compiler)] : [])];
}

/** Starts a cache in front of the server at a port. */
export async function startCache(name: CacheName, origin: number): Promise<Daemon> {
  const { program, setup } = PROGRAMS[name];
  return await Daemon.start(program, (place) => setup({ ...place, origin }));
}
