/** The page on `lifecycle front`: its blocks, run as they stand, on a machine of its own. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { copy } from "../support/copy.ts";
import { installTarball, NPM } from "../support/npm.ts";
import { MACHINE, Machine } from "../support/machine.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program, shared } from "../support/permissions.ts";

const installed = shared(NPM, () => installTarball());

/** The blocks of the page in a language. */
function blocks(language: string): string[] {
  const page = Deno.readTextFileSync(fromRoot("lib/usage/front/README.md"));
  return [...page.matchAll(RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))]
    .map(([, block = ""]) => block);
}

const [SETTINGS = ""] = blocks("json");
const [LOCATIONS = "", BACKUP = ""] = blocks("nginx");

/** A machine with the page's Node and the tarball. */
class FrontMachine implements AsyncDisposable {
  private constructor(private readonly machine: Machine) {}

  static async make(): Promise<FrontMachine> {
    const machine = await Machine.make();
    const { folder } = installed();
    const node = `${folder}/node_modules/node24/bin/node`.replaceAll("'", "'\\''");
    await Deno.mkdir(`${machine.folder}/dist`);
    for (const { name } of Deno.readDirSync(folder)) {
      if (name.endsWith(".tgz")) copy(`${folder}/${name}`, `${machine.folder}/dist/${name}`);
    }
    const made = new FrontMachine(machine);
    await made.run(`touch /usr/local/bin/node24 && mount --bind '${node}' /usr/bin/node
      mkdir -p /path/to /srv/log && cp -r ${machine.folder}/dist /path/to/dist`);
    return made;
  }

  /** Runs a script, which must succeed. */
  run(script: string): Promise<string> {
    return this.machine.mustRun(`export npm_config_offline=true\n${script}`);
  }

  write(path: string, text: string): Promise<void> {
    return this.machine.write(path, text);
  }

  /** Starts a program, and waits until it listens on a port. */
  async start(name: string, words: string, port: number): Promise<void> {
    await this.run(
      `setsid sh -c 'echo $$ > /srv/log/${name}.pid; exec ${words}' \\
        < /dev/null > /srv/log/${name}.log 2>&1 &
      for _ in $(seq 300); do
        ! curl --silent --output /dev/null http://127.0.0.1:${port} || exit 0
        sleep 0.1
      done
      cat /srv/log/${name}.log >&2; exit 1`,
    );
  }

  /** Ends a program, and returns what it has printed. */
  end(name: string, signal = "TERM"): Promise<string> {
    return this.run(
      `process=$(cat /srv/log/${name}.pid); rm /srv/log/${name}.pid; kill -${signal} $process
      while kill -0 $process 2> /dev/null; do sleep 0.1; done; cat /srv/log/${name}.log`,
    );
  }

  /** Gets a URL, and returns the response with its head. */
  get(url: string, ...options: string[]): Promise<string> {
    return this.run(`curl --silent --include ${options.join(" ")} ${url}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.machine[Symbol.asyncDispose]();
  }
}

const nginxWith = (http: string) =>
  `daemon off; error_log stderr; pid /srv/log/nginx; events {} http { access_log off; ${http} }`;

needing(...NPM, ...MACHINE, ...["nginx", "caddy", "python3", "systemd-analyze"].map(program))(
  "the page sets front up behind nginx and behind Caddy, as a service",
  async () => {
    await using machine = await FrontMachine.make();
    const [install = "", check = "", report = ""] = blocks("sh");
    await machine.run(install);
    await machine.write("/etc/retire.json", SETTINGS);
    await machine.run(
      `mkdir -p /srv/site/v1 /srv/site/v2 /srv/site/users/7
      for path in v1/songs v2/songs users/7/avatar index.html; do echo $path > /srv/site/$path; done`,
    );
    const server = "python3 -m http.server 8000 --bind 127.0.0.1 --directory /srv/site";
    await machine.start("server", server, 8000);
    assertMatch(
      await machine.run(check),
      /^Listens on 127\.0\.0\.1:8001, .*\n.*\nRecord: .*\(does not exist yet; .*\n.*\n\/v1: .*HEAD gets 301 /,
    );

    const [unit = ""] = blocks("ini");
    await machine.write("/etc/systemd/system/lifecycle-front.service", unit);
    await machine.run("systemd-analyze verify /etc/systemd/system/lifecycle-front.service");
    const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    const [, state = ""] = /^StateDirectory=(.*)$/m.exec(unit) ?? [];
    await machine.run(`install -d -o nobody /var/lib/${state}`);
    await machine.start("front", `runuser -u nobody -- ${command}`, 8001);

    const own = `server { listen 127.0.0.1:8090; ${LOCATIONS} }`;
    await machine.write("/srv/nginx.conf", nginxWith(own));
    await machine.start("nginx", "nginx -e stderr -c /srv/nginx.conf", 8090);
    const [caddy = ""] = blocks("caddyfile");
    const global = "{\n admin off\n auto_https off\n}\n";
    await machine.write("/srv/Caddyfile", `${global}http://127.0.0.1:8091 {\n${caddy}}\n`);
    await machine.start("caddy", "caddy run --config /srv/Caddyfile --adapter caddyfile", 8091);

    for (const port of [8090, 8091]) {
      const get = (path: string) => machine.get(`http://127.0.0.1:${port}${path}`, "--path-as-is");
      const old = await get("/v1/songs");
      assertMatch(old, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nv1\/songs\n$/);
      assertMatch(old, /^Deprecation: @1795219200\r$/m);
      assertMatch(old, /^Sunset: Wed, 30 Jun 2027 00:00:00 GMT\r$/m);
      assertStringIncludes(old, '</v2/songs>; rel="successor-version", </deprecation>');
      assertStringIncludes(await get("/users/7/avatar"), "</people/7/picture>; rel=");
      assertMatch(
        await get("/deprecation"),
        /^HTTP\/1\.1 200 OK\r\n[^]*<code>\/v1<\/code> becomes /,
      );
      for (const path of ["/v2/songs", "/", "/v10", "/users/7"]) {
        assert(!/^Deprecation/m.test(await get(path)), path);
      }
      for (const path of ["/V1", "/%761/songs", "//v1/songs", "/v2/../v1/songs"]) {
        assertMatch(await get(path), /^Deprecation/m, path);
      }
    }
    const [usage = "", gate = ""] = report.trim().split("\n");
    await machine.run("sleep 1"); // a heartbeat
    assertMatch(await machine.run(usage), /^ *app curl/m);
    assertMatch(await machine.run(`${gate} || [ $? = 1 ]`), /^Still called: /);
    const log = await machine.run(
      `kill $(pgrep -P $(cat /srv/log/front.pid)); sleep 1; cat /srv/log/front.log`,
    );
    assertStringIncludes(log, '"event":"stop"');
    await machine.run("rm /srv/log/front.pid");
  },
);

needing(...NPM, ...MACHINE, program("python3"))("the page's image runs front", async () => {
  await using machine = await FrontMachine.make();
  const [dockerfile = ""] = blocks("dockerfile");
  assert(dockerfile.trim().split("\n").length <= 10, dockerfile);
  const settings = JSON.parse(SETTINGS);
  delete settings.database;
  const changed = { ...settings, listen: "0.0.0.0:8001", behindProxy: true };
  await machine.write("/path/to/dist/retire.json", JSON.stringify(changed));
  await machine.start("server", "python3 -m http.server 8000 --bind 127.0.0.1", 8000);
  await machine.run("id -u node 2> /dev/null || useradd node");
  // What Docker does with each instruction.
  let [folder, user, environment] = ["/", "root", ""];
  for (const line of dockerfile.trim().split("\n")) {
    const [, name, value = ""] = /^(\w+) (.*)$/.exec(line) ?? [];
    if (name === "WORKDIR") await machine.run(`mkdir -p ${folder = value}`);
    else if (name === "COPY") {
      const words = value.split(" ");
      const names = words.slice(0, -1).map((word) => `/path/to/dist/${word}`).join(" ");
      await machine.run(`cd ${folder} && cp ${names} ${words.at(-1)}`);
    } else if (name === "RUN") await machine.run(`cd ${folder} && ${value}`);
    else if (name === "ENV") environment = value;
    else if (name === "USER") user = value;
    else if (name === "CMD") {
      const words: string[] = JSON.parse(value);
      await machine.write(
        "/srv/run",
        `cd ${folder}\nexport ${environment}\nexec ${words.join(" ")}\n`,
      );
    } else assertMatch(line, /^(?:FROM node:24-slim|VOLUME \/data|EXPOSE 8001)$/);
  }
  await machine.start("front", `runuser -u ${user} -- sh /srv/run`, 8001);
  assertMatch(
    await machine.get("http://127.0.0.1:8001/v1/none"),
    /^HTTP\/1\.1 404 [^]*^Deprecation: /m,
  );
  assertEquals(await machine.run("stat --format %U /data/calls.sqlite"), "node\n");
});

/** A server that takes two seconds for the first call of a slow path. */
const SLOW = `import http.server, time
called = set()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_first = self.path not in called
        called.add(self.path)
        if "/slow" in self.path and is_first: time.sleep(2)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
`;

needing(...NPM, ...MACHINE, ...["nginx", "python3"].map(program))(
  "nginx serves the old paths in place of front only while that is dead, as the page says",
  async () => {
    await using machine = await FrontMachine.make();
    const [install = ""] = blocks("sh");
    await machine.run(install);
    const settings = JSON.parse(SETTINGS);
    const past = { deprecatedAt: "2020-01-01" };
    const routes = {
      "/v1": past,
      "/brown": { ...past, brownouts: ["2020-01-02/9000-01-01"], sunsetAt: "9000-01-02" },
      "/gone": { ...past, sunsetAt: "2021-01-01" },
    };
    const database = "sqlite:/srv/calls.sqlite";
    await machine.write("/etc/retire.json", JSON.stringify({ ...settings, database, routes }));
    await machine.write("/srv/slow.py", SLOW);
    await machine.start("server", "python3 /srv/slow.py", 8000);
    const front = "/opt/lifecycle/node_modules/.bin/lifecycle front /etc/retire.json";
    await machine.start("front", front, 8001);
    // What the page does not say: where it listens, and after how long a call is slow.
    const configuration = BACKUP.replace(
      "server {\n",
      "server {\n listen 127.0.0.1:8090; proxy_read_timeout 1s;\n",
    )
      .replaceAll("^/(v1|", "^/(v1|brown|gone|");
    const withDefaults = configuration.replaceAll(" max_fails=0", "")
      .replace("proxy_next_upstream error;", "").replaceAll("8090", "8092");
    assert(withDefaults.length < configuration.length - 30);
    for (
      const [name, text, port] of [["nginx", configuration, 8090], [
        "other",
        withDefaults,
        8092,
      ]] as const
    ) {
      await machine.write(
        `/srv/${name}.conf`,
        nginxWith(text).replace("/srv/log/nginx", `/srv/log/${name}`),
      );
      await machine.start(name, `nginx -e stderr -c /srv/${name}.conf`, port);
    }
    const isAnnounced = async (path: string, port = 8090) => {
      const response = await machine.get(`http://127.0.0.1:${port}${path}`);
      return [Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1]), /^Deprecation/m.test(response)];
    };
    // A slow call, a brownout and the sunset: the next call still goes through front.
    assertEquals(await isAnnounced("/v1/a"), [200, true]);
    assertEquals(await isAnnounced("/v1/slow?1"), [504, false]); // nginx's own
    assertEquals(await isAnnounced("/v1/a"), [200, true]);
    assertEquals(await isAnnounced("/brown/a"), [503, true]);
    assertEquals(await isAnnounced("/gone/a"), [410, true]);
    assertEquals(await isAnnounced("/v1/a"), [200, true]);
    // With nginx's defaults, one slow call sends the next ones past it, also after the sunset.
    assertEquals(await isAnnounced("/gone/a", 8092), [410, true]);
    assertEquals(await isAnnounced("/v1/slow?2", 8092), [200, false]);
    assertEquals(await isAnnounced("/v1/a", 8092), [200, false]);
    assertEquals(await isAnnounced("/gone/a", 8092), [200, false]);
    // Dead, it is replaced, and back at once when it is started again.
    await machine.end("front", "KILL");
    assertEquals(await isAnnounced("/v1/a"), [200, false]);
    assertEquals(await isAnnounced("/gone/a"), [200, false]); // as the page warns
    await machine.start("front", front, 8001);
    assertEquals(await isAnnounced("/v1/a"), [200, true]);
    assertEquals(await isAnnounced("/gone/a"), [410, true]);
  },
);

Deno.test("the page's settings are those of the code", () => {
  const page = Deno.readTextFileSync(fromRoot("lib/usage/front/README.md"));
  const code = Deno.readTextFileSync(fromRoot("lib/usage/front/settings.ts"));
  const named = [...page.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  );
  const lists = [...code.matchAll(/^const (?:NAMES|POLICY_NAMES|ROUTE_NAMES) = \[(.*?)\];/gms)]
    .flatMap(([, list = ""]) => [...list.matchAll(/"(\w+)"/g)].map(([, name]) => name));
  assertEquals(named.toSorted(), lists.toSorted());
});
