/**
 * A real S3-compatible store that checks signatures: OpenStack Swift's s3api, as Debian packages it,
 * in a temporary folder and on ports of its own.
 */

import { AwsV4Signer } from "aws4fetch";
import { type Condition, LINUX, type Need, pathOf, program } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";

/** Swift keeps what it knows of an object in attributes of its file. */
const ATTRIBUTES: Condition = {
  what: "extended attributes in the folder for temporary files",
  isMet: () => hasAttributes ??= probe(),
};
let hasAttributes: boolean | undefined;

/** What tests on a store need. */
export const S3_STORE: readonly Need[] = [
  "processes",
  LINUX,
  ...["proxy", "account", "container", "object"].map((name) => program(`swift-${name}-server`)),
  program("memcached"),
  program("setpriv"),
  ATTRIBUTES,
];

/** The bucket that every store has. */
export const BUCKET = "media";

/** Whose it is. No log may hold the secret. */
const [ACCESS_KEY, SECRET_KEY, REGION] = ["test:tester", "keep-this-out-of-logs", "us-east-1"];

/** Its servers of data, each in a process. */
const SERVERS = ["account", "container", "object"] as const;

/** A running store. Disposing of it ends it and removes its folder. */
export class S3Store implements AsyncDisposable {
  #processes: Deno.ChildProcess[] = [];

  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly ports: Readonly<Record<typeof SERVERS[number] | "memory", number>>,
  ) {}

  /** Makes a store with an empty bucket. */
  static async start(): Promise<S3Store> {
    const folder = await Deno.makeTempDir({ prefix: "media-head-s3-" });
    const [account, container, object, memory] = [freePort(), freePort(), freePort(), freePort()];
    const store = new S3Store(folder, freePort(), { account, container, object, memory });
    await store.#configure();
    await store.launch();
    await store.request("PUT", "");
    return store;
  }

  /** The variables with which a server uses it; `prefix` is what its keys begin with. */
  environment(prefix: string): Record<string, string> {
    return {
      CONTENT: `s3://${BUCKET}/${prefix}`,
      AWS_ACCESS_KEY_ID: ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: SECRET_KEY,
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${this.port}`,
    };
  }

  /** Starts it, and waits until it answers. */
  async launch(): Promise<void> {
    const { memory } = this.ports;
    const start = (name: string, args: string[]) => {
      const process = command(name, args, this.folder).spawn();
      this.#processes.push(process);
    };
    start("memcached", ["-u", "root", "-l", "127.0.0.1", "-p", String(memory), "-m", "16"]);
    for (const name of [...SERVERS, "proxy"]) {
      start(`swift-${name}-server`, [`${this.folder}/${name}.conf`]);
    }
    const ended = Promise.race(this.#processes.map(({ status }) => status));
    let hasEnded = false;
    ended.then(() => hasEnded = true);
    for (const port of [...Object.values(this.ports), this.port]) {
      while (!await accepts(port)) {
        if (hasEnded) throw new Error(`A part of the store ended: see ${this.folder}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Ends it. Its objects stay. */
  async stop(): Promise<void> {
    for (const process of this.#processes) process.kill("SIGKILL");
    for (const { status } of this.#processes) await status;
    this.#processes = [];
  }

  /** Keeps it from running. The kernel still accepts connections to it. */
  freeze(): void {
    for (const { pid } of this.#processes) Deno.kill(pid, "SIGSTOP");
  }

  /** Lets it run on. */
  thaw(): void {
    for (const { pid } of this.#processes) Deno.kill(pid, "SIGCONT");
  }

  /** Sends a request about an object of the bucket, and gives the answer; a fault is thrown. */
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
    const response = await fetch(url, { method, headers, body: body ?? null, client });
    const content = await response.bytes();
    if (!response.ok && response.status !== 404) {
      throw new Error(`${method} ${key}: ${response.status} ${new TextDecoder().decode(content)}`);
    }
    return new Response(method === "HEAD" || response.status === 204 ? null : content, response);
  }

  /** The keys that begin with a prefix. */
  async keys(prefix: string): Promise<string[]> {
    const list = await this.request("GET", `?list-type=2&prefix=${encodeURIComponent(prefix)}`);
    return [...(await list.text()).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Writes what its parts are started with. */
  async #configure(): Promise<void> {
    const { folder, port, ports } = this;
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
      `${common(port)}[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${ports.memory}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:s3api]
use = egg:swift#s3api
location = ${REGION}
s3_acl = false
check_bucket_owner = false
auth_pipeline_check = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${SECRET_KEY} .admin
`,
    );
    const rings = SERVERS.map((name) => `${folder}/${name}.ring.gz=${ports[name]}`);
    const { success, stderr } = await command("python3", ["-c", RINGS, ...rings], folder).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
  }
}

/** Tells each kind of data its one place; by the programs for it, that takes nine starts of Python. */
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

/** A command that ends with this process. Debian's Python, whatever other there is on the path. */
function command(name: string, args: string[], cwd: string): Deno.Command {
  const path = name === "python3" ? "/usr/bin/python3" : pathOf(name) ?? name;
  return new Deno.Command(pathOf("setpriv") ?? "setpriv", {
    args: ["--pdeathsig=KILL", path, ...args],
    cwd,
    clearEnv: true,
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    stdin: "null",
    stdout: "null",
    stderr: name === "python3" ? "piped" : "null",
  });
}

/** Whether files there can have attributes. */
function probe(): boolean {
  const folder = Deno.makeTempDirSync({ prefix: "media-head-s3-" });
  const script = 'import os; os.setxattr(".", "user.probe", b"1")';
  try {
    return command("python3", ["-c", script], folder).outputSync().success;
  } finally {
    Deno.removeSync(folder);
  }
}

function userName(): string {
  const { stdout } = new Deno.Command("id", { args: ["-un"] }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}
