import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { postgresAt } from "../../lib/database/place.ts";
import { readConfig } from "../../lib/server/config.ts";
import { placesOf } from "../../lib/server/storage_places.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing } from "../support/permissions.ts";
import { ServerProcess } from "../support/server.ts";

Deno.test("the start line has storage without credentials", () => {
  const [key, secret] = ["key-of-the-bucket", "keep-this-out-of-logs"];
  const environment: Record<string, string> = {
    DATABASE_URL: `postgres://media:${secret}@db.test:5433/media?password=${secret}`,
    CONTENT: "s3://bucket/audio",
    AWS_ACCESS_KEY_ID: key,
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_REGION: "eu-central-1",
    DEPRECATED_AT: "2026-11-21",
  };
  const config = readConfig((name) => environment[name], "server");
  assertEquals(placesOf(config), {
    catalogue: "postgres://db.test:5433/media",
    content: "s3://bucket/audio",
  });
  const database = postgresAt(`postgres:///media?host=/run/postgresql&password=${secret}`);
  const { catalogue } = placesOf({ ...config, database });
  assertEquals(catalogue, "postgres:///media?host=/run/postgresql");
});

needing("processes")(
  "a server's first line says what it announces, and warns of odd dates",
  () =>
    inFolder(async (folder) => {
      const start = async (environment: Record<string, string>) => {
        const server = await ServerProcess.start(environment, folder);
        const { pid } = server;
        const { log } = await server.stop();
        const [warnings, starts] = ["warning", "start"]
          .map((kind) => log.filter(({ event }) => event === kind));
        const subjects = warnings?.map(({ message }) => String(message).split(/[,:]/)[0]);
        return { pid, first: starts?.[0], warnings: subjects };
      };
      const mistyped = await start({
        SUNSET_DATE: "2999-01-01",
        SUNSET_AT: "video=2998-01-01",
        BROWNOUT_STATUS: "503",
        AFTER_SUNSET: "gone",
      });
      const retirement = {
        ...{ phase: "deprecated", phaseEndsAt: null, deprecatedAt: "2026-11-21T00:00:00Z" },
        ...{ sunsetAt: null, brownouts: [], brownoutStatus: 503, afterSunset: "gone" },
        holds: [],
      };
      assertEquals(mistyped.first?.["routes"], {
        "/audio/:token": retirement,
        "/video/:token": {
          ...retirement,
          phaseEndsAt: "2998-01-01T00:00:00Z",
          sunsetAt: "2998-01-01T00:00:00Z",
        },
      });
      const { first, pid } = mistyped;
      const machine = Deno.hostname();
      assertEquals([first?.["machine"], first?.["pid"]], [machine, pid]);
      using ledger = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 60_000 });
      const session = "SELECT id, machine, pid, process_started FROM media_head_session";
      const started = Date.parse(String(first?.["started"]));
      const expected = { id: first?.["session"], machine, pid, process_started: started };
      assertEquals<unknown>({ ...ledger.prepare(session).get() }, expected);
      assertEquals(mistyped.first?.["catalogue"], `sqlite:${folder}/catalogue.sqlite`);
      const upper = await start({ DATABASE_URL: `SQLITE:${folder}/catalogue.sqlite` });
      assertEquals(upper.first?.["catalogue"], `sqlite:${folder}/catalogue.sqlite`);
      assertEquals(ledger.prepare(session).all().length, 2, "both starts used one ledger");
      assertEquals(mistyped.first?.["content"], `${folder}/files`);
      assertEquals(mistyped.warnings, []);
      const past = { DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" };
      assertEquals((await start(past)).warnings, ["/audio/", "The sunset has passed"]);
      assertEquals((await start(past)).warnings, ["The sunset has passed"]);
      const now = Date.now();
      ledger.exec(
        `INSERT INTO media_head_hold (id, since, until, because)
         VALUES ('a', ${now}, ${now + 3_600_000}, 'a test')`,
      );
      assertEquals((await start(past)).warnings, [], "they do not answer as removed");
    }),
);
