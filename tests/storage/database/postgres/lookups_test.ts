import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../../lib/storage/errors.ts";
import { newToken } from "../../../../lib/storage/token.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { openEngine } from "../../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../../support/postgres.ts";
import { Relay } from "../../../support/relay.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

test("Lookups report a fault to subsequent callers, without waiting for another one", async () => {
  await using relay = new Relay(server().port);
  const url = server().urlOf(await server().createDatabase(), relay.port);
  const { catalogue, close } = await openEngine(url);
  await catalogue.check();
  relay.lose("everything");
  const { message } = await assertRejects(() => Promise.resolve(catalogue.version()), StorageError);
  const begun = performance.now();
  const again = await assertRejects(async () => await catalogue.find(newToken()), StorageError);
  assertEquals(again.message, message);
  const took = performance.now() - begun;
  assert(took < 1_000, `${took} ms`); // another one would take 1,500
  relay.restore();
  for (const end = performance.now() + 20_000;;) {
    try {
      assertEquals((await catalogue.find(newToken())).state, "unknown");
      break;
    } catch (error) {
      if (!(error instanceof StorageError) || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  await close();
});
