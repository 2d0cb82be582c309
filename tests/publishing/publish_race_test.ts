/** Several publishers of the same folder at the same time. */

import { assertEquals } from "@std/assert";
import { newPrefix } from "../support/bucket_storage.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { type Need, needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { wav } from "../support/wav.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const store = shared(S3_STORE, () => S3Store.start());

const PUBLISHERS = 3;

/** FILES=357 makes it a long run. */
const filesWanted = () => Number(Deno.env.get("FILES") ?? 20);

const ENGINES: [name: string, needs: readonly Need[], url: () => Promise<string | undefined>][] = [
  ["SQLite", ["processes"], () => Promise.resolve(undefined)],
  ["PostgreSQL", POSTGRES, async () => postgres().urlOf(await postgres().createDatabase())],
];

const PLACES: [name: string, needs: readonly Need[], settings: () => Record<string, string>][] = [
  ["a folder", [], () => ({})],
  ["a bucket", S3_STORE, () => store().environment(newPrefix())],
];

for (const [engine, needs, urlOf] of ENGINES) {
  for (const [place, more, settingsOf] of PLACES) {
    needing(...needs, ...more)(
      `three commands that publish a folder at once on ${engine} and ${place} publish each file once`,
      () =>
        inFolder(async (folder) => {
          const url = await urlOf();
          const settings = { ...settingsOf(), ...(url === undefined ? {} : { DATABASE_URL: url }) };
          const shows = `${folder}/shows`;
          await Deno.mkdir(shows);
          const count = filesWanted();
          for (let index = 0; index < count; index++) {
            await Deno.writeFile(`${shows}/${index}.wav`, wav(index, 20_000));
          }
          await media(folder, ["import", "/dev/null"], settings); // creates the catalogue
          const publish = () => media(folder, ["publish", shows, "--json"], settings);
          const results = await Promise.all(Array.from({ length: PUBLISHERS }, publish));
          const reported = results.flatMap(({ code, stdout, stderr }) => {
            assertEquals([code, stderr.replace(/^Published .*\n/m, "")], [0, ""]);
            return stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
          });
          assertEquals(reported.length, PUBLISHERS * count);
          const published = reported.filter(({ outcome }) => outcome === "published");
          assertEquals(published.length, count);
          assertEquals(new Set(reported.map(({ token }) => token)).size, count);
          const { stdout } = await media(folder, ["verify", "--content"], settings);
          const found = `${count} items verified: ${count} as published, 0 missing, 0 different`;
          assertEquals(stdout, `${found}, 0 not checked; 0 unused\n`);
        }),
    );
  }
}
