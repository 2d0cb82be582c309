/** An application as the documents have it: in CI, where nothing is installed, and its test. */

import { assertEquals, assertMatch } from "@std/assert";
import { shellWord } from "../../lib/input/printable.ts";
import { fromRoot } from "../support/paths.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { needing, program } from "../support/permissions.ts";

needing(...NPM, program("git"))(
  "npm ci finds the library in a fresh clone with an empty cache, and the test of README passes",
  async () => {
    await using place = await installTarball();
    const { folder, tarball } = place;
    const page = await Deno.readTextFile(fromRoot("lib/usage/applications.md"));
    const [, install = ""] = /```sh\n(npm init[^]*?)```/.exec(page) ?? [];
    const [, test = ""] = /```js ignore\n([^`]*node:test[^]*?)```/.exec(page) ?? [];
    const [application, clone] = [`${folder}/application`, `${folder}/clone`];
    await Deno.mkdir(application);
    await Deno.writeTextFile(`${application}/retired.test.mjs`, test);
    const here = install.replace(/\/path\/to\/dist\/\S+/, () => shellWord(tarball));
    const git = "git -c user.name=a -c user.email=a@example.com";
    const script = `set -e
      ${here}
      ${git} init --quiet && echo node_modules > .gitignore
      ${git} add . && ${git} commit --quiet --message first
      ${git} clone --quiet . ${shellWord(clone)}
      cd ${shellWord(clone)}
      npm ci --silent --cache ${shellWord(`${folder}/cache`)}
      ${shellWord(`${folder}/node_modules/node24/bin/node`)} --test`;
    const { code, text, errors } = await run(application, "sh", "-c", script);
    assertEquals([code, errors], [0, ""], text);
    assertMatch(text, /^# pass 1$|^ℹ pass 1$/m);
  },
);
