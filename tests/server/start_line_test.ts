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
        const first = log.find(({ event }) => event === "start");
        const warnings = log.filter(({ event }) => event === "warning");
        return {
          pid,
          first,
          warnings: warnings.map(({ message }) => String(message).split(/[,:]/)[0]),
        };
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
      assertEquals(
        {
          ...ledger.prepare("SELECT id, machine, pid, process_started FROM media_head_session")
            .get(),
        },
        {
          id: first?.["session"],
          machine,
          pid,
          process_started: Date.parse(String(first?.["started"])),
        },
      );
      assertEquals(mistyped.first?.["catalogue"], `sqlite:${folder}/catalogue.sqlite`);
      const upper = await start({ DATABASE_URL: `SQLITE:${folder}/catalogue.sqlite` });
      assertEquals(upper.first?.["catalogue"], `sqlite:${folder}/catalogue.sqlite`);
      const { count } = ledger.prepare("SELECT count(*) AS count FROM media_head_session").get() ??
        {};
      assertEquals(count, 2, "both starts used one ledger");
      assertEquals(mistyped.first?.["content"], `${folder}/files`);
      assertEquals(mistyped.warnings, []);
      const past = await start({ DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" });
      assertEquals(past.warnings, ["/audio/", "The sunset has passed"]);
      const again = await start({ DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" });
      assertEquals(again.warnings, ["The sunset has passed"]);
      const now = Date.now();
      ledger.exec(
        `INSERT INTO media_head_hold (id, since, until, because)
         VALUES ('a', ${now}, ${now + 3_600_000}, 'a test')`,
      );
      const held = await start({ DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" });
      assertEquals(held.warnings, [], "they do not answer as removed");
    }),
);
