/**
 * The examples in docstrings. The test task runs them, as `--doc` says; here is that none is missing.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import project from "../deno.json" with { type: "json" };
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";

/** What is read of `deno doc --json`. */
interface Declaration {
  readonly kind: string;
  readonly location: { readonly filename: string };
  readonly jsDoc?: { readonly tags?: readonly { readonly kind: string; readonly doc?: string }[] };
}
interface Docs {
  readonly nodes: Record<string, {
    readonly symbols: readonly {
      readonly name: string;
      readonly declarations: readonly Declaration[];
    }[];
  }>;
}

needing("processes")(
  "every function of the library has an example that the test task runs",
  async () => {
    const args = ["doc", "--json", project.exports["./lifecycle"]];
    const cwd = fromRoot(".");
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd })
      .output();
    assert(success, new TextDecoder().decode(stderr));
    const { nodes }: Docs = JSON.parse(new TextDecoder().decode(stdout));
    assertEquals(Object.keys(nodes).length, 1);
    const run = /--doc (.*)$/.exec(project.tasks.test.command)?.[1]?.split(" ") ?? [];
    const names: string[] = [];
    for (const { name, declarations } of Object.values(nodes).flatMap(({ symbols }) => symbols)) {
      for (const { kind, location, jsDoc } of declarations) {
        if (kind !== "function") continue;
        names.push(name);
        const path = relative(cwd, fileURLToPath(location.filename));
        assert(run.some((each) => path.startsWith(each)), `${path} is not run`);
        const example = jsDoc?.tags?.find(({ kind }) => kind === "example")?.doc ?? "";
        assertMatch(example, new RegExp(`\`\`\`ts\\n[^]*\\b${name}\\([^]*\`\`\``), name);
        assertMatch(example, /^assert\w+\(/m, `the example of ${name}() asserts nothing`);
      }
    }
    assert(names.includes("withLifecycle"), names.join());
  },
);
