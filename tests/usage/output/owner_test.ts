/** What clients send, through the database of each engine, to what is reported of their releases. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { newToken } from "../../../lib/storage/token.ts";
import { inFolder, mediaHere } from "../../support/media_cli.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const ENGINES: [
  name: string,
  needs: Parameters<typeof needing>,
  url: () => Promise<string | undefined>,
][] = [
  ["SQLite", [], () => Promise.resolve(undefined)],
  ["PostgreSQL", [...POSTGRES], async () => postgres().urlOf(await postgres().createDatabase())],
];

/** After the removal every valid token counts as a call, though nothing is published. */
const REMOVED = {
  DEPRECATED_AT: "1999-01-01",
  SUNSET_AT: "2000-01-01",
  DEPRECATION_DOC: "/deprecation",
};

/** A client in the JSON. */
interface Client {
  readonly client: string;
  readonly calls: number;
  readonly releases: readonly { readonly release: string; readonly calls: number }[];
}

/** User-Agents, with how often each calls, and what is reported. */
const SENT: [count: number, userAgent: string][] = [
  [5, "Overcast/3.0.1 (+http://overcast.fm/; iOS podcast app)"],
  [3, "Overcast/2.9.4"],
  [2, "Overcast"],
  [2, "%E6%92%AD%E5%AE%A2/1.0"],
  [1, "\xe6\x92\xad\xe5\xae\xa2/1.0"], // the same in plain UTF-8
  [1, "Jane-491511/7.0"],
  [1, "Pod/3.0-jane@example.com"],
  [1, "Pod/192.0.2.44"],
];

for (const [name, needs, urlOf] of ENGINES) {
  needing("processes", ...needs)(
    `releases that clients send are reported, and sent to the client's owner, on ${name}`,
    () =>
      inFolder(async (folder) => {
        const url = await urlOf();
        const environment = { ...REMOVED, ...url === undefined ? {} : { DATABASE_URL: url } };
        const server = await ServerProcess.start(environment, folder);
        for (const [count, userAgent] of SENT) {
          for (let call = 0; call < count; call++) {
            const path = `/audio/${newToken()}`;
            await requestRaw(server.port, "HEAD", path, { "User-Agent": userAgent });
          }
        }
        // Neither breaks by the removal.
        await requestRaw(server.port, "HEAD", "/audio/x", { "User-Agent": "Overcast/9.9" });
        await requestRaw(server.port, "HEAD", `/media/${newToken()}`, {
          "User-Agent": "Overcast/8.8",
        });
        await server.stop();

        const usage = (...args: string[]) => mediaHere(folder, ["usage", ...args], environment);
        const { clients } = JSON.parse((await usage("--json")).stdout);
        const found = (clients as Client[]).map(({ client, calls, releases }) => {
          return [client, calls, ...releases.map(({ release, calls }) => `${release}: ${calls}`)];
        });
        assertEquals(found.toSorted(), [
          ["(other)", 1],
          ["app Overcast", 10, "3.0.1: 5", "2.9.4: 3"],
          ["app Pod", 2, "192.0.2: 1"],
          ["app 播客", 3, "1.0: 3"],
        ]);
        const text = (await usage()).stdout;
        assertMatch(
          text,
          / {2}Releases or apps\n {2}app Overcast .* {2}3\.0\.1 \(5 calls\), 2\.9\.4 \(3\)\n/,
        );

        const file = `${folder}/page.html`;
        const bare = await usage("--client", "app Overcast", "--html", file);
        assertEquals([bare.code, bare.stdout], [0, `Wrote ${file}\n`]);
        assertStringIncludes(
          bare.stderr,
          "media: set PUBLIC_URL, so that the page names this server",
        );
        assert(!/https?:\/\/|<a /.test(await Deno.readTextFile(file)), "an address");
        const PUBLIC_URL = "https://media.example.com";
        const named = await mediaHere(
          folder,
          ["usage", "--client", "app Overcast", "--html", file, "--json"],
          { ...environment, PUBLIC_URL },
        );
        assertEquals([named.stdout, named.stderr], [`${JSON.stringify({ file })}\n`, ""]);
        const page = await Deno.readTextFile(file);
        const parts = [
          "<h1>Overcast still calls paths of media.example.com that were removed</h1>",
          "<code>/audio/{token}</code> becomes <code>/media/{token}</code>",
          `<a href="${PUBLIC_URL}/deprecation">${PUBLIC_URL}/deprecation</a>`,
          "<li>3.0.1: 5 calls, the last recorded at <time ",
          "; 2 calls have no release on record.",
        ];
        for (const part of parts) assertStringIncludes(page, part);
        assert(!/\/video|播客|Pod|verdict|phase/i.test(page.replace(/<style>[^]*?<\/style>/g, "")));
      }),
  );
}
