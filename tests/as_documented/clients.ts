/** The lines for clients, run as they stand against a server. */

import { assertEquals, assertMatch } from "@std/assert";
import { inFolder } from "../support/media_cli.ts";
import { run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";

needing("processes", program("python3"), program("curl"))(
  "the lines for clients in a shell and in Python notice a retirement, and nothing else",
  () =>
    inFolder(async (folder) => {
      const page = await Deno.readTextFile(fromRoot("lib/lifecycle/clients.md"));
      const [, shell = ""] = /```sh\n(.*?)```/s.exec(page) ?? [];
      const [, python = ""] = /```python\n(.*?)```/s.exec(page) ?? [];
      const dates = { DEPRECATED_AT: "2026-11-21", SUNSET_AT: "2099-06-30" };
      await using server = await ServerProcess.start(dates, folder);
      const at = (text: string, path: string) =>
        text.replace("https://example.com/v1/songs", `http://127.0.0.1:${server.port}${path}`);
      const token = "bb3017d2-c56e-40fb-8495-0316e6321879";
      for (const [path, isOld] of [[`/audio/${token}`, true], ["/openapi.json", false]] as const) {
        const shown = await run(folder, "sh", "-c", at(shell, path));
        assertEquals(shown.code, isOld ? 1 : 0, shown.errors);
        const { text, errors } = await run(folder, "python3", "-c", at(python, path));
        assertEquals(errors, "");
        assertMatch(text, isOld ? /^http\S+ is removed on 2099-06-30: <\/.+\n$/ : /^$/);
      }
    }),
);
