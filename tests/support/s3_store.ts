/**
 * A real S3-compatible store that checks signatures: OpenStack Swift's s3api as packaged by Debian,
 * in a temporary folder and on free ports.
 */

import { AwsV4Signer } from "aws4fetch";
import { type Condition, isFile, LINUX, type Need, program } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";
import { mustRun } from "./run.ts";
import { until, within } from "./within.ts";

/** Debian's Python, even if another is first in the path. */
const PYTHON: Condition = { what: "/usr/bin/python3", isMet: () => isFile("/usr/bin/python3") };

/** Swift stores an object's metadata in extended attributes of its file. */
const ATTRIBUTES: Condition = {
  what: "extended attributes in the folder for temporary files",
  isMet: () => hasAttributes ??= PYTHON.isMet() && probe(),
};
let hasAttributes: boolean | undefined;

/** What tests on a store need. */
export const S3_STORE: readonly Need[] = [
  "processes",
  LINUX,
  ...["proxy", "account", "container", "object"].map((name) => program(`swift-${name}-server`)),
  program("memcached"),
  program("bash"),
  program("id"),
  PYTHON,
  ATTRIBUTES,
];

/** Python is slow to start. */
const PATIENCE = { timeout: 120_000 };

/** The number of attempts to start. */
const ATTEMPTS = 3;

/** The bucket of every store. */
export const BUCKET = "media";

/** The domain under which each bucket has a host of its own, as its address. */
export const STORE_DOMAIN = "store.test";

/** Its credentials. The secret must not be logged. */
export const SECRET_KEY = "keep-this-out-of-logs";
export const ACCESS_KEY = "test:tester";
const REGION = "us-east-1";

/** The key, with the same secret, of a user who may do only what the bucket's access list says. */
export const READER_KEY = "test:reader";

/** Its processes. */
const PARTS = ["memcached", "account", "container", "object", "proxy"] as const;
type Part = typeof PARTS[number];

/** Those that store data. */
const SERVERS = ["account", "container", "object"] as const;

/**
 * Starts and signals the processes on command, line by line, and ends them all at the end of its
 * input, even if the tests are killed.
 */
const SUPERVISOR = `
set -m # a group of its own for each: Swift signals all of its group
declare -A pids
while read -r verb name command; do
  case $verb in
    start) $command </dev/null >/dev/null 2>&1 & pids[$name]=$! ;;
    *) kill -$verb \${pids[$name]}; if [ $verb = TERM ]; then wait \${pids[$name]}; fi ;;
  esac 2>/dev/null
  echo
done
kill -KILL \${pids[@]}
`;

/** A running store. Disposing of it ends it and removes its folder. */
export class S3Store implements AsyncDisposable {
  readonly #supervisor: Deno.ChildProcess;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #answers: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;

  private constructor(
    readonly folder: string,
    private readonly ports: Readonly<Record<Part, number>>,
  ) {
    this.#supervisor = new Deno.Command("bash", {
      args: ["-c", SUPERVISOR],
      cwd: folder,
      clearEnv: true,
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#orders = this.#supervisor.stdin.getWriter();
    this.#answers = this.#supervisor.stdout.getReader();
  }

  /** Starts a store with an empty bucket. If a port is taken meanwhile, tries others. */
  static async start(): Promise<S3Store> {
    for (let attempt = 1;; attempt++) {
      try {
        return await S3Store.#launch();
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
      }
    }
  }

  static async #launch(): Promise<S3Store> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-s3-" });
    const ports = Object.fromEntries(PARTS.map((part) => [part, freePort()]));
    const store = new S3Store(folder, ports as Record<Part, number>);
    try {
      await store.#configure();
      for (const part of PARTS) await store.#start(part);
      for (const part of PARTS) await store.#listens(part);
      await store.request("PUT", "");
      return store;
    } catch (error) {
      await store[Symbol.asyncDispose]();
      throw error;
    }
  }

  get port(): number {
    return this.ports.proxy;
  }

  /** Returns the environment of a server that uses it at a port, with a key `prefix`. */
  environment(prefix: string, port = this.port): Record<string, string> {
    return {
      CONTENT: `s3://${BUCKET}/${prefix}`,
      AWS_ACCESS_KEY_ID: ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: SECRET_KEY,
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
    };
  }

  /** Starts the front end again. */
  async launch(): Promise<void> {
    await this.#start("proxy");
    await this.#listens("proxy");
  }

  /** Stops the front end. Stored data remains. */
  async stop(): Promise<void> {
    await this.#order("TERM", "proxy");
  }

  /** Suspends the front end. The kernel still accepts connections. */
  async freeze(): Promise<void> {
    await this.#order("STOP", "proxy");
  }

  /** Resumes it. */
  async thaw(): Promise<void> {
    await this.#order("CONT", "proxy");
  }

  /** Sends a request for an object of the bucket; throws unless it succeeds. */
  async request(
    method: string,
    key: string,
    body?: Uint8Array<ArrayBuffer>,
    fields: Record<string, string> = {},
  ): Promise<Response> {
    const url = `http://127.0.0.1:${this.port}/${BUCKET}${key === "" ? "" : "/"}${key}`;
    const signer = new AwsV4Signer({
      ...{ method, url, service: "s3", region: REGION, headers: fields },
      ...{ accessKeyId: ACCESS_KEY, secretAccessKey: SECRET_KEY },
    });
    const { headers } = await signer.sign();
    using client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
    const signal = AbortSignal.timeout(PATIENCE.timeout);
    const response = await fetch(url, { method, headers, body: body ?? null, client, signal });
    const content = await response.bytes();
    if (!response.ok && response.status !== 404) {
      throw new Error(`${method} ${key}: ${response.status} ${new TextDecoder().decode(content)}`);
    }
    return new Response(method === "HEAD" || response.status === 204 ? null : content, response);
  }

  /** Lists the keys with a prefix. */
  async keys(prefix: string): Promise<string[]> {
    const list = await this.request("GET", `?list-type=2&prefix=${encodeURIComponent(prefix)}`);
    return [...(await list.text()).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#orders.close();
    const process = this.#supervisor;
    await within("the end of the store", process.status, { process });
    await this.#answers.cancel();
    await Deno.remove(this.folder, { recursive: true });
  }

  async #start(part: Part): Promise<void> {
    const command = part === "memcached"
      ? `memcached -u ${userName()} -l 127.0.0.1 -p ${this.ports.memcached} -m 16`
      : `swift-${part}-server ${part}.conf`;
    await this.#order("start", part, command);
  }

  /** Sends the supervisor a command, and waits until it is done. */
  async #order(verb: string, part: Part, command = ""): Promise<void> {
    await this.#orders.write(new TextEncoder().encode(`${verb} ${part} ${command}\n`));
    await within(`the store's ${part} to ${verb}`, this.#answers.read(), PATIENCE);
  }

  async #listens(part: Part): Promise<void> {
    await until(`the store's ${part} to listen`, () => accepts(this.ports[part]), PATIENCE.timeout);
  }

  /** Writes the configuration of the processes. */
  async #configure(): Promise<void> {
    const { folder, ports } = this;
    const write = (name: string, lines: string) => Deno.writeTextFile(`${folder}/${name}`, lines);
    const common = (bindPort: number) =>
      `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${bindPort}
workers = 0
user = ${userName()}
swift_dir = ${folder}
devices = ${folder}/node
mount_check = false
log_level = WARNING
log_address = ${folder}/no-syslog
recon_cache_path = ${folder}
`;
    await Deno.mkdir(`${folder}/node/d1`, { recursive: true });
    await write(
      "swift.conf",
      "[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n" +
        "[storage-policy:0]\nname = only\ndefault = yes\n",
    );
    for (const name of SERVERS) {
      await write(
        `${name}.conf`,
        `${common(ports[name])}[pipeline:main]\npipeline = ${name}-server\n` +
          `[app:${name}-server]\nuse = egg:swift#${name}\n`,
      );
    }
    await write(
      "proxy.conf",
      `${common(ports.proxy)}[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
error_suppression_limit = 1000000
${PLAIN_FILTERS.map((name) => `[filter:${name}]\nuse = egg:swift#${name}\n`).join("")}\
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${ports.memcached}
[filter:s3api]
use = egg:swift#s3api
location = ${REGION}
s3_acl = false
storage_domain = ${STORE_DOMAIN}
check_bucket_owner = false
auth_pipeline_check = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${SECRET_KEY} .admin
user_test_reader = ${SECRET_KEY}
`,
    );
    const rings = SERVERS.map((name) => `${folder}/${name}.ring.gz=${ports[name]}`);
    await mustRun(PYTHON.what, ["-c", RINGS, ...rings], { clearEnv: true });
  }
}

const PLAIN_FILTERS = ["catch_errors", "listing_formats", "bulk", "slo"];

/** Builds the rings, each with a single device; Swift's own tools would start Python nine times. */
const RINGS = `
import sys
from swift.common.ring import RingBuilder
for path, port in (argument.split("=") for argument in sys.argv[1:]):
    builder = RingBuilder(1, 1, 1)
    address = {"ip": "127.0.0.1", "port": int(port)}
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "device": "d1", "weight": 1, "meta": "",
                     "replication_ip": address["ip"], "replication_port": address["port"], **address})
    builder.rebalance()
    builder.get_ring().save(path)
`;

/** Whether files there can have extended attributes. */
function probe(): boolean {
  const folder = Deno.makeTempDirSync({ prefix: "media-head-s3-" });
  const script = 'import os, sys; os.setxattr(sys.argv[1], "user.probe", b"1")';
  try {
    const args = ["-c", script, folder];
    return new Deno.Command(PYTHON.what, { args, clearEnv: true }).outputSync().success;
  } finally {
    Deno.removeSync(folder);
  }
}

function userName(): string {
  const { stdout } = new Deno.Command("id", { args: ["-un"] }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}
