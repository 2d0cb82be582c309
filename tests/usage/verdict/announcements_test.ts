import { assertEquals } from "@std/assert";
import { judgedRoutes, latestSession } from "../../../lib/usage/verdict/announcements.ts";
import { POLICIES, running, session } from "../../support/usage_report.ts";

Deno.test("what a report says of the server is from the session that began last of those running", () => {
  const [server, other] = [running(9, { id: "server" }), running(8, { id: "other" })];
  const tried = session(2, 1, { id: "tried", ended: "stopped" });
  assertEquals(latestSession([server, other, tried])?.id, "other");
  assertEquals(latestSession([session(9, 8), tried])?.id, "tried");
  assertEquals(latestSession([]), undefined);
});

Deno.test("the routes are those of open sessions, else of the last one that had any", () => {
  const ended = session(9, 8, { ended: "stopped" });
  const empty = session(2, 1, { policies: {}, ended: "stopped" });
  const open = running(3, { policies: {}, unmounted: { "/v1": POLICIES["/audio/:token"] } });
  assertEquals(judgedRoutes([ended, empty]), Object.keys(POLICIES));
  assertEquals(judgedRoutes([ended, open, empty]), ["/v1"]);
  assertEquals(judgedRoutes([empty]), []);
});
