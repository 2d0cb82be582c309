import { assertEquals } from "@std/assert";
import { MAX_RELEASES, MAX_RELEASES_OF_CLIENT, Releases } from "../../lib/usage/releases.ts";
import { DAY, NOON } from "../support/counted_call.ts";

const NOBODY: ReadonlySet<string> = new Set();

/** Counts calls of many releases of one client: the last one most often. */
function countMany(releases: Releases, client: string, numbers: readonly number[], now: number) {
  for (const number of numbers) {
    for (let calls = 0; calls <= number; calls++) releases.count(client, `1.${number}`, now);
  }
}

const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, index) => from + index);

Deno.test("Releases records the releases with the most calls, known ones first", () => {
  const releases = new Releases();
  countMany(releases, "app a", upTo(60), NOON);
  const rows = releases.take(NOBODY, NOON);
  assertEquals(rows.length, MAX_RELEASES_OF_CLIENT);
  assertEquals(rows[0], {
    ...{ day: "2027-02-01", client: "app a", release: "1.59" },
    ...{ calls: 60, last: NOON },
  });
  assertEquals(rows.at(-1)?.release, "1.40");
  assertEquals(releases.take(NOBODY, NOON), []);

  countMany(releases, "app a", [39, 99, 41], NOON + 1);
  releases.count("app b", "1.0", NOON + 2);
  const found = releases.take(NOBODY, NOON).map(({ client, release, calls }) =>
    `${client} ${release}: ${calls}`
  );
  assertEquals(found, ["app a 1.41: 42", "app b 1.0: 1"]);
});

Deno.test("Releases has new limits on every day, also in the flush after midnight", () => {
  const releases = new Releases();
  const midnight = NOON + DAY / 2;
  countMany(releases, "app a", upTo(18), NOON);
  releases.take(NOBODY, NOON);
  countMany(releases, "app a", upTo(5, 20), midnight - 1);
  countMany(releases, "app a", upTo(15, 30), midnight);
  const daysOf = (rows: readonly { day: string }[]) =>
    [...Map.groupBy(rows, ({ day }) => day)].map(([day, { length }]) => `${day}: ${length}`);
  const rows = releases.take(NOBODY, midnight + 2_000);
  assertEquals(daysOf(rows).toSorted(), ["2027-02-01: 2", "2027-02-02: 15"]);
  countMany(releases, "app a", upTo(15, 50), midnight + 3_000);
  assertEquals(daysOf(releases.take(NOBODY, midnight + 4_000)), ["2027-02-02: 5"]);
});

Deno.test("Releases records nothing of refused clients, and a bounded number in all", () => {
  const releases = new Releases();
  const clients = upTo(150).map((number) => `app ${number}`);
  for (const client of clients) countMany(releases, client, upTo(20), NOON);
  assertEquals(releases.take(new Set(clients), NOON), []);
  releases.count("app known", "1.0", NOON);
  assertEquals(releases.take(NOBODY, NOON).length, 1);
  let rows = 0;
  for (let flush = 0; flush < 3; flush++) {
    for (const client of clients.toReversed()) countMany(releases, client, upTo(20), NOON);
    releases.count("app known", "1.0", NOON); // though too many are tracked already
    const taken = releases.take(NOBODY, NOON);
    assertEquals(taken.filter(({ client }) => client === "app known").length, 1);
    rows = Math.max(rows, taken.length);
  }
  assertEquals(rows, MAX_RELEASES);
});
