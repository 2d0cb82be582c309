/**
 * The examples in docstrings. The test task runs them, as `--doc` says; here is that none is missing.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import project from "../deno.json" with { type: "json" };
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";
import { mustRun } from "./support/run.ts";

/** What is read of `deno doc --json`. */
interface Docs {
  readonly nodes: Record<string, { readonly symbols: readonly DocumentedSymbol[] }>;
}
interface DocumentedSymbol {
  readonly name: string;
  readonly declarations: readonly {
    readonly kind: string;
    readonly location: { readonly filename: string };
    readonly jsDoc?: {
      readonly tags?: readonly { readonly kind: string; readonly doc?: string }[];
    };
  }[];
}

needing("processes")(
  "every function of the library has an example that the test task runs",
  async () => {
    const args = ["doc", "--json", project.exports["./lifecycle"]];
    const cwd = fromRoot(".");
    const { nodes }: Docs = JSON.parse(await mustRun(Deno.execPath(), args, { cwd }));
    assertEquals(Object.keys(nodes).length, 1);
    const tested = /--doc (.*)$/.exec(project.tasks.test.command)?.[1]?.split(" ") ?? [];
    const names: string[] = [];
    for (const { name, declarations } of Object.values(nodes).flatMap(({ symbols }) => symbols)) {
      for (const { kind, location, jsDoc } of declarations) {
        if (kind !== "function") continue;
        names.push(name);
        const path = relative(cwd, fileURLToPath(location.filename));
        assert(tested.some((each) => path.startsWith(each)), `${path} is not run`);
        const example = jsDoc?.tags?.find(({ kind }) => kind === "example")?.doc ?? "";
        assertMatch(example, new RegExp(`\`\`\`ts\\n[^]*\\b${name}\\([^]*\`\`\``), name);
        assertMatch(example, /^assert\w+\(/m, `the example of ${name}() asserts nothing`);
      }
    }
    assert(names.includes("withLifecycle"), names.join());
  },
);
