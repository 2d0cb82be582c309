import { assertEquals } from "@std/assert";
import { describePolicy, placesOf } from "../../lib/server/start_line.ts";
import type { Phase } from "../../lib/lifecycle/policy.ts";
import { readConfig } from "../../lib/server/config.ts";
import { needing } from "../support/permissions.ts";
import { inFolder } from "../support/media_cli.ts";
import { ServerProcess } from "../support/server.ts";

Deno.test("the start line has phase, dates and next brownout, and storage without credentials", () => {
  const [key, secret] = ["key-of-the-bucket", "keep-this-out-of-logs"];
  const environment: Record<string, string> = {
    DATABASE_URL: `postgres://media:${secret}@db.test:5433/media?password=${secret}`,
    CONTENT: "s3://bucket/audio",
    AWS_ACCESS_KEY_ID: key,
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_REGION: "eu-central-1",
    DEPRECATED_AT: "2026-11-21",
    SUNSET_AT: "2027-06-30",
    BROWNOUTS: "2027-03-01T09:00Z/PT1H, 2027-04-01T09:00Z/PT2H",
  };
  const config = readConfig((name) => environment[name], "server");
  const dates = { deprecation: "2026-11-21T00:00:00Z", sunset: "2027-06-30T00:00:00Z" };
  const second = "2027-04-01T09:00:00Z/2027-04-01T11:00:00Z";
  const rows: [now: string, phase: Phase, brownout: string][] = [
    ["2026-11-20", "announced", "2027-03-01T09:00:00Z/2027-03-01T10:00:00Z"],
    ["2027-03-01T09:30Z", "brownout", "2027-03-01T09:00:00Z/2027-03-01T10:00:00Z"],
    ["2027-03-01T10:00Z", "deprecated", second],
    ["2027-07-01", "removed", "no brownout"],
  ];
  for (const [now, phase, brownout] of rows) {
    const described = describePolicy(config.policy, Date.parse(now));
    assertEquals(described, { phase, ...dates, brownout });
  }
  assertEquals(placesOf(config), {
    catalogue: "postgres://db.test:5433/media",
    content: "s3://bucket/audio",
  });
  const databaseUrl = `postgres:///media?host=/run/postgresql&password=${secret}`;
  assertEquals(placesOf({ ...config, databaseUrl }).catalogue, "postgres:///media");
});

needing("processes")(
  "a server's first line says what it announces, and warns of odd dates",
  () =>
    inFolder(async (folder) => {
      const start = async (environment: Record<string, string>) => {
        const server = await ServerProcess.start(environment, folder);
        const { log } = await server.stop();
        const first = log.find(({ event }) => event === "start");
        const warnings = log.filter(({ event }) => event === "warning");
        return { first, warnings: warnings.map(({ message }) => String(message).split(/[,:]/)[0]) };
      };
      const mistyped = await start({ SUNSET_DATE: "2999-01-01", SUNSET_AT: "video=2998-01-01" });
      const retirement = {
        ...{ phase: "deprecated", deprecation: "2026-11-21T00:00:00Z" },
        ...{ sunset: "no sunset", brownout: "no brownout" },
      };
      assertEquals(mistyped.first?.["routes"], {
        "/audio/:token": retirement,
        "/video/:token": { ...retirement, sunset: "2998-01-01T00:00:00Z" },
      });
      assertEquals(mistyped.first?.["machine"], Deno.hostname());
      assertEquals(mistyped.first?.["catalogue"], `sqlite:${folder}/catalogue.sqlite`);
      assertEquals(mistyped.first?.["content"], `${folder}/files`);
      assertEquals(mistyped.warnings, []);
      const past = await start({ DEPRECATED_AT: "2020-01-01", SUNSET_AT: "2021-01-01" });
      assertEquals(past.warnings, ["The sunset has passed"]);
    }),
);
