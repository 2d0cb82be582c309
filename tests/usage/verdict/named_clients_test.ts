/** The clients that the operator names. */

import { assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { ALWAYS, report, row, ROWS } from "../../support/usage_report.ts";

Deno.test("reportUsage() refuses a client that is not on record, and knows one from before", async () => {
  const unknown = () => report(ROWS, ALWAYS, { client: "overcast" });
  await assertRejects(
    unknown,
    RefusedError,
    'No client "overcast" on record; use the report\'s name',
  );
  const { clients } = await report(ROWS, ALWAYS, { client: "Forgotten" });
  assertEquals(clients, []);
});

Deno.test("a client's name without its kind is recognized", async () => {
  const rows = [row(40, "app PocketPlayer", 1), row(1, "site a.test", 1)];
  const options = [["PocketPlayer", "app PocketPlayer"], ["a.test", "site a.test"]] as const;
  for (const [client, meant] of options) {
    await assertRejects(
      () => report(rows, ALWAYS, { client }),
      RefusedError,
      `No client "${client}" on record; did you mean "${meant}"?`,
    );
  }
});
