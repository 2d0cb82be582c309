/**
 * The documents' blocks for operators, run as they stand and in order: one machine, from its setup
 * to a command.
 */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { MACHINE, Machine } from "../support/machine.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";

/** Returns the blocks of a section, without those of the sections below it. */
async function blocksOf(heading: string, page = "lib/server/README.md"): Promise<string[]> {
  const text = await Deno.readTextFile(fromRoot(page));
  const section = text.split(/^##+ /m).find((each) => each.startsWith(`${heading}\n`));
  const blocks = [...(section ?? "").matchAll(/^ *```(?:ba)?sh\n(.*?)^ *```/gms)];
  if (blocks.length === 0) throw new Error(`${page} has no block under "${heading}"`);
  return blocks.map(([, block = ""]) => block);
}

const statusOf = (path: string) =>
  `curl --silent --head --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000${path}`;

needing(...MACHINE)(
  "one machine: the blocks set it up, and a command uses the storage of the servers",
  async () => {
    await using machine = await Machine.make();
    const [setup = ""] = await blocksOf("systemd");
    await machine.mustRun(setup);
    assertEquals(
      await machine.mustRun("stat --format '%U:%G %a' /opt/media-head/.env"),
      "root:media-head 640\n",
    );
    const sample = "/opt/media-head/lib/publishing/samples/sample.mp3";
    await machine.mustRun(`mkdir /srv/incoming && cp ${sample} /srv/incoming/episode-12.mp3`);

    const [publish = "", check = ""] = await blocksOf("Commands");
    const published = await machine.mustRun(publish);
    const [token = ""] = /[\da-f]{8}-[\da-f-]{27}/.exec(published) ?? [];
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

    assertMatch(
      await machine.mustRun(check),
      /\nDatabase: sqlite:\/var\/lib\/media-head\/catalogue\.sqlite\n/,
    );
    const unit = await Deno.readTextFile(fromRoot("lib/server/deploy/media-head@.service"));
    const started = /^ExecStart=(.*)/m.exec(unit)?.[1]?.replaceAll("%S", "/var/lib");
    assertStringIncludes(check.replaceAll(/\s*\\\n\s*/g, " "), `${started} --check`);
  },
);
