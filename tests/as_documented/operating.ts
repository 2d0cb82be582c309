/**
 * The documents' blocks for operators, run as they stand and in order: one machine, a container with
 * PostgreSQL and a bucket, and a catalogue that moves and is restored.
 */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { shellWord } from "../../lib/input/printable.ts";
import { MACHINE, Machine } from "../support/machine.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { sideBySide } from "../support/side_by_side.ts";

/** Returns the blocks of a section, without those of the sections below it. */
async function blocksOf(heading: string, page = "lib/server/README.md"): Promise<string[]> {
  const text = await Deno.readTextFile(fromRoot(page));
  const section = text.split(/^##+ /m).find((each) => each.startsWith(`${heading}\n`));
  const blocks = [...(section ?? "").matchAll(/^ *```(?:ba)?sh\n(.*?)^ *```/gms)];
  if (blocks.length === 0) throw new Error(`${page} has no block under "${heading}"`);
  return blocks.map(([, block = ""]) => block);
}

/** Returns the first token in an output. */
const tokenIn = (output: string) => /[\da-f]{8}-[\da-f-]{27}/.exec(output)?.[0] ?? "";

const statusOf = (path: string) =>
  `curl --silent --head --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000${path}`;

async function onOneMachine(): Promise<void> {
  await using machine = await Machine.make();
  const [checkout = "", setup = ""] = await blocksOf("systemd");
  const place = "mv /opt/media-head-1 /srv/checkout && rm /opt/media-head";
  await machine.mustRun(`${place} && cd ${fromRoot(".")}\n${checkout}`);
  await machine.mustRun("cd /opt/media-head && [ ! -e data ] && [ ! -e .env ] && ls -d main.ts");
  // With what is not committed yet.
  await machine.mustRun("rm -r /opt/media-head-1 && mv /srv/checkout /opt/media-head-1");
  await machine.mustRun(setup);
  assertEquals(
    await machine.mustRun("stat --format '%U:%G %a' /opt/media-head/.env"),
    "root:media-head 640\n",
  );
  const sample = "/opt/media-head/lib/publishing/samples/sample.mp3";
  await machine.mustRun(`mkdir /srv/incoming && cp ${sample} /srv/incoming/episode-12.mp3`);

  const [publish = "", report = "", restart = ""] = await blocksOf("Commands");
  const published = await machine.mustRun(publish);
  const token = tokenIn(published);
  assertEquals(await machine.mustRun(statusOf(`/audio/${token}`)), "200");
  // From another folder, by a path that is relative to it, and by the servers' user.
  const here = await machine.mustRun("cd /srv/incoming && media-head publish episode-12.mp3");
  assertMatch(here, /^Skipped/);
  const own = "runuser -u media-head -- media-head";
  assertStringIncludes(await machine.mustRun(`${own} list`), token);
  await machine.mustRun(`media-head unpublish ${token}`);
  assertEquals(await machine.mustRun(statusOf(`/media/${token}`)), "410");

  // Nobody else may read the settings, and without them nothing is changed.
  const other = await machine.run(
    "runuser -u daemon -- env DENO_DIR=/var/cache/media-head deno task --cwd /opt/media-head media list",
  );
  assertMatch(other.stderr, /\/\.env cannot be read \(Permission denied/);
  assertEquals(other.code, 2);

  // Into a folder in which the servers' user may not write.
  await machine.mustRun(`install -d -m 711 /srv/mine && cd /srv/mine\n${report}`);
  assertMatch(
    await machine.mustRun("cat /srv/mine/report.html"),
    /^<!DOCTYPE html>[^]*<\/html>\n$/,
  );
  const rejects = "cd /srv/mine && echo '{}' | media-head import - --rejects - > rejects.ndjson";
  assertEquals((await machine.run(rejects)).code, 1);
  const written = await machine.mustRun("cd /srv/mine && cat rejects.ndjson && ls -A");
  assertEquals(written, "{}\nrejects.ndjson\nreport.html\n");

  const unit = await Deno.readTextFile(fromRoot("lib/server/deploy/media-head@.service"));
  const started = /^ExecStart=(.*)/m.exec(unit)?.[1]?.replaceAll("%S", "/var/lib");
  assertMatch(await machine.mustRun(restart), /\nactive\nactive\nactive\nactive\n$/);
  await checkMail(machine);
  for (const user of ["root", "media-head"]) {
    const check = `cd /tmp && runuser -u ${user} -- sh -x /usr/local/bin/media-head --check`;
    const { code, stdout, stderr } = await machine.run(check);
    assertEquals(code, 0, stderr);
    assertMatch(stdout, /\nDatabase: sqlite:\/var\/lib\/media-head\/catalogue\.sqlite\n/);
    assertStringIncludes(stderr, `${started} --check\n`);
  }
  const wrong = "sed -i 's|^DATABASE_URL=|&x|' /opt/media-head/.env && media-head --check";
  assertEquals((await machine.run(wrong)).code, 1);
}

/** Checks that a mail comes from the gate unless nobody calls. */
async function checkMail(machine: Machine): Promise<void> {
  const [install = ""] = await blocksOf("An alert by mail");
  await machine.mustRun(install);
  // What every mail server has at this place gets a mail on standard input.
  await machine.mustRun(
    `mkdir /srv/mail && chmod 777 /srv/mail
     printf '#!/bin/sh\\ncat > /srv/mail/new\\n' > /srv/sendmail && chmod 755 /srv/sendmail
     sed -i 's|/usr/sbin/sendmail|/srv/sendmail|' /usr/local/bin/media-head-gate`,
  );
  const service = await Deno.readTextFile(fromRoot("lib/server/deploy/media-head-gate.service"));
  const [, gate = ""] = /^ExecStart=(.*)/m.exec(service) ?? [];
  await machine.mustRun(gate);
  assertMatch(
    await machine.mustRun("cat /srv/mail/new && rm /srv/mail/new"),
    /^To: root\nSubject: Deprecated paths of \S+\n\nStill called: .*\n\/audio/,
  );
  // A record of forty days in which nobody has called.
  const aged = "UPDATE media_head_session SET began = began - 40 * 86400000;" +
    "DELETE FROM media_head_usage; DELETE FROM media_head_day";
  const ledger = "/var/lib/media-head/catalogue.sqlite-ledger";
  await machine.mustRun(
    `deno eval 'import { DatabaseSync } from "node:sqlite";
     new DatabaseSync("${ledger}", { timeout: 30_000 }).exec("${aged}");'`,
  );
  assertMatch(await machine.mustRun("media-head usage --gate"), /^Clear: /);
  await machine.mustRun(gate);
  assertEquals(await machine.mustRun("ls /srv/mail"), "");
}

/** Returns the value of each instruction of the Dockerfile with a name. */
async function instructions(name: string): Promise<string[]> {
  const text = await Deno.readTextFile(fromRoot("lib/server/deploy/Dockerfile"));
  const lines = text.replaceAll("\\\n", "").replaceAll(/^#.*\n/gm, "").split("\n");
  return lines.filter((line) => line.startsWith(`${name} `)).map((line) =>
    line.slice(name.length + 1)
  );
}

async function inContainer(): Promise<void> {
  await using postgres = await PostgresServer.start();
  await using store = await S3Store.start();
  await using machine = await Machine.make("shared");
  const port = freePort();
  const settings = {
    DEPRECATED_AT: "2026-11-21",
    DATABASE_URL: `${
      postgres.urlOf(await postgres.createDatabase())
    }?application_name=a&sslmode=disable`,
    ...store.environment("pods"),
  };
  // What Docker does with each instruction; Node's image has the user `node`.
  const variables = (await instructions("ENV")).join(" ");
  const [install = "", warm = ""] = (await instructions("RUN")).slice(1); // without Deno's own
  await machine.mustRun(
    `useradd node
     mkdir /app
     cd /app
     install -m 755 "$(deno eval 'console.log(Deno.execPath())')" /usr/local/bin/deno
     cp -r /opt/media-head/{deno.json,deno.lock,main.ts,lib} .
     cp -r /var/cache/media-head /deno
     export ${variables}\n${install}\n${warm}`,
  );
  const [command = "[]"] = await instructions("CMD");
  const words: string[] = JSON.parse(command);
  const given = Object.entries({ ...settings, HOST: "127.0.0.1", PORT: String(port) });
  const [image] = await instructions("ENV");
  const asImage = (words: readonly string[]) =>
    `cd /app && exec runuser -u node -- env -i PATH=/usr/local/bin:/usr/bin:/bin ${image} ` +
    [...given.map((pair) => pair.join("=")), ...words].map(shellWord).join(" ");

  const check = await machine.mustRun(asImage([...words, "--check"]));
  const addresses = [
    `127.0.0.1:${port}`,
    `127.0.0.1:${postgres.port}`,
    `127.0.0.1:${store.port}`,
  ];
  assertStringIncludes(check, `\nNetwork: --allow-net=${addresses.join()}\n`);

  await machine.write("/srv/start", asImage(words));
  await machine.mustRun(
    `(bash /srv/start < /dev/null 2> /srv/log; echo $? > /srv/ended) > /dev/null 2>&1 &
     until grep -q '"event":"start"' /srv/log; do
       [ ! -f /srv/ended ] || { cat /srv/log; exit 1; }
       sleep 0.1
     done`,
  );
  const page = await Deno.readTextFile(fromRoot("lib/server/README.md"));
  const [, typed = ""] = /^kubectl exec deploy\/media-head -- (.*) media list$/m.exec(page) ?? [];
  const media = (...args: string[]) =>
    machine.mustRun(asImage([...typed.split(" "), "media", ...args]));
  const published = await media("publish", "lib/publishing/samples/sample.mp3");
  const token = tokenIn(published);
  assertStringIncludes(await media("list"), token);
  const path = `http://127.0.0.1:${port}/audio/${token}`;
  assertEquals(
    (await machine.mustRun(
      `curl --silent --output /srv/got ${path} && stat --format %s /srv/got`,
    )).trim(),
    "26186",
  );

  // Kubernetes runs preStop first, and then sends SIGTERM.
  const [, preStop = "[]"] = /preStop: \{ exec: \{ command: (\[.*?\]) \} \}/.exec(page) ?? [];
  const stopping: string[] = JSON.parse(preStop);
  await machine.mustRun(stopping.map(shellWord).join(" "));
  await machine.mustRun(
    `kill $(pgrep --full --uid node main.ts)
     until [ -f /srv/ended ]; do sleep 0.1; done; grep -q '"event":"stop"' /srv/log`,
  );
}

async function movedAndRestored(): Promise<void> {
  await using machine = await Machine.make();
  const [, setup = ""] = await blocksOf("systemd");
  await machine.mustRun(setup);
  const samples = "/opt/media-head/lib/publishing/samples";
  /** Runs a script in the shell of an operator whose files everybody may read. */
  const paste = (script: string) => machine.mustRun(`umask 022\n${script}`);
  const publish = async (name: string) =>
    tokenIn(await paste(`media-head publish ${samples}/${name} --again`));
  const before = await publish("sample.mp3");
  const taken = await publish("sample.mp3");
  /** What others than its user may look into, with its mode. systemd makes the folder itself so. */
  const shown = (place: string) => machine.mustRun(`find ${place} -perm /077 -printf '%m %p\\n'`);
  const folder = "755 /var/lib/media-head\n";
  assertEquals(await shown("/var/lib/media-head"), folder);

  // A version with another schema.
  await machine.mustRun(
    `cp -r /opt/media-head-1 /opt/media-head-2
     sed -i 's/^  version: .*/  version: 99,/' /opt/media-head-2/lib/storage/catalogue/schema.ts`,
  );
  const [check = "", restart = "", ...moving] = await blocksOf("Upgrading");
  const checked = await machine.run(check);
  assertMatch(checked.stderr, /It has version \d+ of the catalogue's schema, but this release /);
  assertEquals(checked.code, 1);
  await paste([...moving, restart].join("\n"));
  assertEquals(await shown("/var/lib/media-head /catalogue.ndjson"), folder);
  assertEquals(await machine.mustRun(statusOf(`/audio/${before}`)), "200");
  const page = await Deno.readTextFile(fromRoot("lib/server/README.md"));
  const [also = ""] = /--also sqlite:[\w./-]+/.exec(page) ?? [];
  assertMatch(
    await machine.mustRun(`media-head usage ${also}`),
    /^No process .*sqlite:\/var\/lib\/media-head\/before\/catalogue\.sqlite/m,
  );
  await machine.mustRun(`media-head unpublish ${taken}`);
  const after = await publish("sample.mp4");

  const [backup = ""] = await blocksOf("Backup");
  await paste(backup);
  await paste("/usr/local/bin/media-head-backup"); // the next night
  assertEquals(await shown("/var/lib/media-head /var/lib/media-head-backup"), folder);
  const [restore = ""] = await blocksOf("Restoring");
  await machine.mustRun(
    `systemctl stop 'media-head@*'
     cp -r /var/lib/media-head-backup /var/lib/copied
     mv /var/lib/media-head /var/lib/lost
     rm -r /var/lib/media-head-backup && mv /var/lib/copied /var/lib/media-head-backup
     find /var/lib/media-head-backup -name 'catalogue*' -exec chmod 644 '{}' +`, // as some copies are
  );
  await paste(restore);
  assertEquals(await shown("/var/lib/media-head"), folder);
  for (const [path, status] of [[before, "200"], [taken, "410"], [after, "200"]]) {
    assertEquals(await machine.mustRun(statusOf(`/media/${path}`)), status);
  }
  assertMatch(await machine.mustRun("media-head verify --content"), /^2 items verified: 2 as /m);
  assertEquals(await machine.mustRun("find /var/lib/media-head ! -user media-head"), "");
}

needing(...MACHINE, ...POSTGRES, ...S3_STORE)(
  "the blocks for operators can be pasted in order",
  () =>
    sideBySide([
      [
        "one machine: the blocks set it up, a command uses the storage of the servers, and the gate mails",
        onOneMachine,
      ],
      [
        "the image's command reaches PostgreSQL and a bucket, as its user and in its folders",
        inContainer,
      ],
      [
        "upgrade, publish, back up, and restore on an empty machine: nothing is lost, or shown to others",
        movedAndRestored,
      ],
    ], ([, play]) => play()),
);
