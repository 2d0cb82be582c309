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
      // The name is in those of its shared memory, which another user's squid may have left.
      args: ["-N", "-n", `test${port}`, "-f", `${folder}/squid.conf`],
      files: {
        "squid.conf": `http_port 127.0.0.1:${port} accel defaultsite=test
          cache_peer 127.0.0.1 parent ${origin} 0 no-query originserver login=PASSTHRU
          http_access allow all
          pid_filename none
          shutdown_lifetime 0 seconds
          cache_log ${folder}/log
          coredump_dir ${folder}
          access_log none\n`,
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
