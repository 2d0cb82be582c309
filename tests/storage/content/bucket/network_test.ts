/**
 * Reaching a store through real programs: a proxy that alone knows its address, certificates of a
 * private CA, and a host for each bucket.
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { Daemon, nginx } from "../../../support/daemon.ts";
import {
  inFolder,
  operatorEnvironment,
  result,
  taskArguments,
} from "../../../support/media_cli.ts";
import { SAMPLE_MP3 } from "../../../support/paths.ts";
import { needing, program, shared } from "../../../support/permissions.ts";
import { freePort } from "../../../support/ports.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { BUCKET, S3_STORE, S3Store, STORE_DOMAIN } from "../../../support/s3_store.ts";
import { ServerProcess } from "../../../support/server.ts";
import { newPrefix } from "../../../support/bucket_storage.ts";
import { type CommandResult, mustRun, runProgram } from "../../../support/run.ts";

const NEEDS = [...S3_STORE, program("squid"), program("nginx"), program("openssl")];
const test = needing(...NEEDS);

/** A store, and what stands between it and its users. */
class Network implements AsyncDisposable {
  private constructor(
    private readonly stack: AsyncDisposableStack,
    readonly store: S3Store,
    /** The certificate of the CA. */
    readonly ca: string,
    /** In front of the store: HTTPS, and only hosts of buckets, as in some clouds. */
    readonly front: Daemon,
    /** It alone can resolve the names of the store and of its buckets. */
    readonly proxy: Daemon,
  ) {}

  static async start(): Promise<Network> {
    await using stack = new AsyncDisposableStack();
    const store = stack.use(await S3Store.start());
    const folder = await Deno.makeTempDir({ prefix: "media-head-ca-" });
    stack.defer(() => Deno.remove(folder, { recursive: true }));
    await issueCertificate(folder);
    const front = stack.use(
      await Daemon.start("nginx", (place) =>
        nginx(
          place.folder,
          `client_max_body_size 0;
          ssl_certificate ${folder}/host.pem; ssl_certificate_key ${folder}/host.key;
          server {
            listen 127.0.0.1:${place.port} ssl; server_name *.${STORE_DOMAIN} localhost;
            location / {
              proxy_pass http://127.0.0.1:${store.port}; proxy_set_header Host $http_host;
            }
          }
          server {
            listen 127.0.0.1:${place.port} ssl default_server;
            return 403 "<Error><Code>SecondLevelDomainForbidden</Code></Error>";
          }`,
        )),
    );
    const hosts = [STORE_DOMAIN, `${BUCKET}.${STORE_DOMAIN}`, "store.lan", `${BUCKET}.lan.test`];
    const proxy = stack.use(
      await Daemon.start("squid", ({ port, folder }) => ({
        args: ["-N", "-n", `test${port}`, "-f", `${folder}/squid.conf`],
        files: {
          hosts: `127.0.0.1 ${hosts.join(" ")}\n`,
          "squid.conf": `http_port 127.0.0.1:${port}
            hosts_file ${folder}/hosts
            http_access allow all
            cache deny all
            pid_filename none
            shutdown_lifetime 0 seconds
            cache_log ${folder}/log
            coredump_dir ${folder}
            access_log none\n`,
        },
      })),
    );
    return new Network(stack.move(), store, `${folder}/ca.pem`, front, proxy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

/** Creates a CA, and a certificate of it for the store and its buckets. */
async function issueCertificate(folder: string): Promise<void> {
  const names = `subjectAltName=DNS:${STORE_DOMAIN},DNS:*.${STORE_DOMAIN},DNS:localhost\n`;
  await Deno.writeTextFile(`${folder}/names`, names);
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  const commands = [
    `req -x509 ${key} -keyout ca.key -out ca.pem -days 2 -subj /CN=private`,
    `req ${key} -keyout host.key -out host.csr -subj /CN=store`,
    "x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out host.pem -days 2 -extfile names",
  ];
  for (const command of commands) {
    await mustRun("openssl", command.split(" "), { cwd: folder });
  }
}

const network = shared(NEEDS, () => Network.start());

/** What the environment of a machine may have of its own. */
const OWN = /^(?:https?|no|all)_proxy$|^NODE_EXTRA_CA_CERTS$|^DENO_(?:CERT|TLS_CA_STORE)$/i;

/** Runs a command by its task, with the task's permissions. */
async function runTask(
  folder: string,
  environment: Record<string, string>,
  ...args: string[]
): Promise<CommandResult> {
  const others = Object.entries(operatorEnvironment(folder).env ?? {}).filter(([name]) =>
    !OWN.test(name)
  );
  const env = { ...Object.fromEntries(others), ...environment };
  const words = taskArguments(args, ["--quiet"]);
  return await result(runProgram(Deno.execPath(), words, { clearEnv: true, env }));
}

type Row = (network: Network) => Record<string, string>;

const PROXY = ({ proxy }: Network) => `http://127.0.0.1:${proxy.port}`;
const PLAIN = ({ store }: Network) => `http://store.lan:${store.port}`;
const TLS = ({ front }: Network) => `https://${BUCKET}.${STORE_DOMAIN}:${front.port}`;

const ROWS: [what: string, row: Row][] = [
  ["HTTP_PROXY", (net) => ({ AWS_ENDPOINT_URL_S3: PLAIN(net), HTTP_PROXY: PROXY(net) })],
  ["http_proxy", (net) => ({ AWS_ENDPOINT_URL_S3: PLAIN(net), http_proxy: PROXY(net) })],
  ["NODE_EXTRA_CA_CERTS", ({ front, ca }) => ({
    AWS_ENDPOINT_URL_S3: `https://localhost:${front.port}`,
    NODE_EXTRA_CA_CERTS: ca,
  })],
  ["HTTP_PROXY, by host", (net) => ({
    AWS_ENDPOINT_URL_S3: `http://${BUCKET}.${STORE_DOMAIN}:${net.store.port}`,
    HTTP_PROXY: PROXY(net),
  })],
  ["HTTPS_PROXY and DENO_CERT", (net) => ({
    AWS_ENDPOINT_URL_S3: TLS(net),
    HTTPS_PROXY: PROXY(net),
    DENO_CERT: net.ca,
  })],
  ["https_proxy and NODE_EXTRA_CA_CERTS", (net) => ({
    AWS_ENDPOINT_URL_S3: TLS(net),
    https_proxy: PROXY(net),
    NODE_EXTRA_CA_CERTS: net.ca,
  })],
  ["NO_PROXY, past a proxy that is down", ({ store }) => ({
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${store.port}`,
    HTTP_PROXY: `http://127.0.0.1:${freePort()}`,
    NO_PROXY: "localhost,127.0.0.0/8",
  })],
];

for (const [what, row] of ROWS) {
  test(`a file is uploaded and served with ${what}`, () =>
    inFolder(async (folder) => {
      const { store } = network();
      const environment = { ...store.environment(newPrefix()), ...row(network()) };
      const published = await runTask(folder, environment, "publish", SAMPLE_MP3, "--json");
      assertEquals([published.code, published.stderr], [0, ""]);
      const { token } = JSON.parse(published.stdout);
      await using server = await ServerProcess.start(environment, folder);
      const { status, content } = await requestRaw(server.port, "GET", `/media/${token}`);
      assertEquals([status, content], [200, await Deno.readFile(SAMPLE_MP3)]);
    }));
}

test("a bucket that is not found at an endpoint is found at the one that the error names", () =>
  inFolder(async (folder) => {
    const { store, front, proxy, ca } = network();
    const through = `http://127.0.0.1:${proxy.port}`;
    const rows: [endpoint: string, reason: string, other: string][] = [
      [
        `https://${STORE_DOMAIN}:${front.port}`,
        "403 (SecondLevelDomainForbidden)",
        `https://${BUCKET}.${STORE_DOMAIN}:${front.port}`,
      ],
      [
        `http://${BUCKET}.lan.test:${store.port}`,
        "404 (NoSuchBucket)",
        `http://${BUCKET}.lan.test:${store.port}/${BUCKET}`,
      ],
    ];
    for (const [endpoint, reason, other] of rows) {
      const environment = {
        ...store.environment(newPrefix().replace(" ", "-")),
        ...{ HTTP_PROXY: through, HTTPS_PROXY: through, DENO_CERT: ca },
        DATABASE_URL: `sqlite:${folder}/${reason.slice(0, 3)}`,
        AWS_ENDPOINT_URL_S3: endpoint,
      };
      const refused = await runTask(folder, environment, "publish", SAMPLE_MP3);
      assertEquals(refused.code, 1);
      assertStringIncludes(refused.stderr, `: the store answers ${reason}; the endpoint`);
      assertStringIncludes(refused.stderr, `the endpoint "${endpoint}" is read as`);
      assertStringIncludes(refused.stderr, `write "${other}"`);
      const found = { ...environment, AWS_ENDPOINT_URL_S3: other };
      assertEquals((await runTask(folder, found, "publish", SAMPLE_MP3)).code, 0);
      const verified = await runTask(folder, found, "verify"); // which lists the bucket
      assertEquals([verified.code, verified.stderr], [0, ""]);
    }
  }));

test("an upload expects the proxy to be a URL, and shows no password of it", () =>
  inFolder(async (folder) => {
    const { store, proxy } = network();
    const environment = {
      ...store.environment(newPrefix()),
      HTTP_PROXY: `user:secret@127.0.0.1:${proxy.port}`,
    };
    const { code, stderr } = await runTask(folder, environment, "publish", SAMPLE_MP3);
    const expected = "a URL like http://host:port in HTTP_PROXY and HTTPS_PROXY";
    const message = `media: bucket: the proxy cannot be used; expected ${expected}\n`;
    assertEquals([code, stderr], [1, message]);
  }));
