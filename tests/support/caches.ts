/**
 * Caches as packaged by Debian, each in front of one server. Only addresses and files are
 * configured, and revalidation where it is asked for; everything else is the default.
 */

import { Daemon, nginx, type Setup } from "./daemon.ts";
import { type Condition, isFile, type Need, program } from "./permissions.ts";

/** Where a proxy listens, forwards to and keeps its files. */
interface Place {
  readonly port: number;
  /** The port of the server behind it. */
  readonly origin: number;
  readonly folder: string;
}

/** Returns how to run HAProxy, given lines of its proxy, and sections before that. */
export function haproxy({ port, origin, folder }: Place, lines: string, sections = ""): Setup {
  return {
    args: ["-db", "-f", `${folder}/haproxy.cfg`],
    files: {
      "haproxy.cfg": `defaults
          mode http
          timeout connect 5s
          timeout client 60s
          timeout server 60s
        ${sections}
        listen all
          bind 127.0.0.1:${port}
          ${lines}
          server one 127.0.0.1:${origin}\n`,
    },
  };
}

/** Where Debian puts the modules of Apache. */
const MODULES = "/usr/lib/apache2/modules";

/** A module of Apache, which can be installed without it. */
export function apacheModule(name: string): Condition {
  return { what: `mod_${name}`, isMet: () => isFile(`${MODULES}/mod_${name}.so`) };
}

/** Returns how to run Apache as a proxy, given more modules, and lines of its configuration. */
export function apache(
  { port, origin, folder }: Place,
  modules: readonly string[],
  lines: string,
): Setup {
  const all = ["mpm_event", "authz_core", "proxy", "proxy_http", ...modules];
  const loads = all.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so\n`);
  return {
    args: ["-d", folder, "-f", `${folder}/apache.conf`, "-D", "FOREGROUND"],
    files: {
      "apache.conf": `${loads.join("")}
        ServerName test
        Listen 127.0.0.1:${port}
        PidFile ${folder}/pid
        ErrorLog ${folder}/log
        User www-data
        Group www-data
        ${lines}
        ProxyPass / http://127.0.0.1:${origin}/\n`,
    },
  };
}

interface Cache extends Place {
  /** Whether it asks whether what it has stored has changed. */
  readonly revalidates: boolean;
}

/** Every cache: its executable, what else it needs, and how to run it. */
const PROGRAMS = {
  varnish: {
    program: "varnishd",
    needs: [program("gcc")],
    setup: ({ port, origin, folder, revalidates }) => ({
      args: [
        ...["-F", "-n", `${folder}/n`, "-a", `127.0.0.1:${port}`, "-b", `127.0.0.1:${origin}`],
        ...revalidates ? ["-p", "default_keep=60"] : [],
      ],
    }),
  },
  nginx: {
    program: "nginx",
    needs: [],
    setup: ({ port, origin, folder, revalidates }) =>
      nginx(
        folder,
        `access_log off;
        proxy_cache_path cache keys_zone=all:1m;
        server {
          listen 127.0.0.1:${port};
          location / { proxy_pass http://127.0.0.1:${origin}; proxy_cache all;
            proxy_cache_revalidate ${revalidates ? "on" : "off"}; }
        }`,
      ),
  },
  squid: {
    program: "squid",
    needs: [],
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
  haproxy: {
    program: "haproxy",
    needs: [],
    setup: (place) =>
      haproxy(
        place,
        `http-request cache-use all
        http-response cache-store all`,
        `cache all
          total-max-size 4
          max-age 3600`,
      ),
  },
  apache: {
    program: "apache2",
    needs: [apacheModule("cache_disk")],
    setup: (place) =>
      apache(
        place,
        ["cache", "cache_disk"],
        `CacheRoot ${place.folder}
        CacheEnable disk /`,
      ),
  },
} satisfies Record<string, { program: string; needs: Need[]; setup: (place: Cache) => Setup }>;

/** The name of any cache. */
export type AnyCache = keyof typeof PROGRAMS;

/** Every cache with a setup here. */
export const ALL_CACHES = Object.keys(PROGRAMS) as AnyCache[];

/** The name of a cache that stores a response whichever method asked for it. */
export type CacheName = "varnish" | "nginx" | "squid";

/** Every such cache. */
export const CACHES: CacheName[] = ["varnish", "nginx", "squid"];

/** What tests with a cache need. */
export function needsOf(name: AnyCache): Need[] {
  const { program: cache, needs } = PROGRAMS[name];
  return ["processes", program(cache), ...needs];
}

/** Starts a cache in front of the server at a port. */
export async function startCache(
  name: AnyCache,
  origin: number,
  { revalidates = false } = {},
): Promise<Daemon> {
  const { program, setup } = PROGRAMS[name];
  return await Daemon.start(program, (place) => setup({ ...place, origin, revalidates }));
}
