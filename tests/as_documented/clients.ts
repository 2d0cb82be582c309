/** The lines for clients, run as they stand against a server. */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { inFolder } from "../support/media_cli.ts";
import { run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";

const DATES = { DEPRECATED_AT: "2026-11-21", SUNSET_AT: "2099-06-30" };

/** A path, what a server is set to, and what the lines in Python say. */
const ROWS: readonly [path: string, settings: Record<string, string>, said: RegExp | undefined][] =
  [
    ["/openapi.json", DATES, undefined],
    ["/audio/TOKEN", DATES, /^http\S+ is removed on 2099-06-30: <\/.+\n$/],
    ["/audio/TOKEN", { DEPRECATED_AT: "2026-11-21" }, /^http\S+ is deprecated: <\/.+\n$/],
    [
      "/audio/TOKEN",
      { DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01", AFTER_SUNSET: "redirect" },
      /^http\S+ is removed on 2021-01-01: <\/media\/.+\n$/,
    ],
  ];

needing("processes", program("python3"), program("curl"), program("awk"))(
  "the lines for clients in a shell and in Python fail for a retirement, and for nothing else",
  async () => {
    const page = await Deno.readTextFile(fromRoot("lib/lifecycle/clients.md"));
    const [, shell = ""] = /```sh\n(.*?)```/s.exec(page) ?? [];
    const [, python = ""] = /```python\n(.*?)```/s.exec(page) ?? [];
    for (const [path, settings, said] of ROWS) {
      await inFolder(async (folder) => {
        await using server = await ServerProcess.start(settings, folder);
        const url = server.origin + path.replace("TOKEN", "bb3017d2-c56e-40fb-8495-0316e6321879");
        const here = (text: string) => text.replace("https://example.com/v1/songs", url);
        const code = said === undefined ? 0 : 1;
        const shown = await run(folder, "sh", "-e", "-c", here(shell));
        assertEquals(shown.code, code, shown.errors);
        if (said !== undefined) assertStringIncludes(shown.text, "Deprecation: @");
        const program = await run(folder, "python3", "-c", here(python));
        assertEquals(program.code, code, program.errors);
        assertMatch(program.errors, said ?? /^$/);
      });
    }
  },
);
