import { assertEquals } from "@std/assert";
import { publishSamples } from "../../lib/publishing/samples.ts";
import { ROUTES } from "../support/routes.ts";
import { openMemory } from "../support/memory_storage.ts";
import { needing } from "../support/permissions.ts";

const test = needing("environment", "files"); // the samples are files

const PATHS = [
  "/audio/bb3017d2-c56e-40fb-8495-0316e6321879",
  "/video/6e89c33b-8d74-41c8-9661-a1e31cbff191",
];

test("publishSamples() publishes once, if nothing was ever published, and returns the paths", async () => {
  await using subject = await openMemory();
  const [first, second] = await Promise.all([
    publishSamples(subject.storage, ROUTES),
    publishSamples(subject.storage, ROUTES),
  ]);
  assertEquals([first?.length, second?.length].includes(2), true);
  assertEquals(await publishSamples(subject.storage, ROUTES), PATHS);
  for await (const [token] of subject.storage.catalogue.list()) {
    await subject.unpublish(token, 5000);
  }
  assertEquals(await publishSamples(subject.storage, ROUTES), []);
});
