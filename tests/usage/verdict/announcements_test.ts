import { assertEquals } from "@std/assert";
import { latestSession } from "../../../lib/usage/verdict/announcements.ts";
import { running, session } from "../../support/usage_report.ts";

Deno.test("what a report says of the server is from the session that began last of those running", () => {
  const [server, other] = [running(9, { id: "server" }), running(8, { id: "other" })];
  const tried = session(2, 1, { id: "tried", ended: "stopped" });
  assertEquals(latestSession([server, other, tried])?.id, "other");
  assertEquals(latestSession([session(9, 8), tried])?.id, "tried");
  assertEquals(latestSession([]), undefined);
});
