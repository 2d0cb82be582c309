import { assertEquals } from "@std/assert";
import { closeWhenStopping } from "../../lib/server/listener.ts";

Deno.test("closeWhenStopping() answers nothing after the last counts, not even what had begun", async () => {
  const shutdown = { stopping: AbortSignal.abort(), hasLastFlushBegun: false };
  const handle = closeWhenStopping(async () => await Promise.resolve(new Response()), shutdown);
  const send = () => handle(new Request("http://test/"));
  const before = await send();
  assertEquals([before.status, before.headers.get("connection")], [200, "close"]);
  const begun = send();
  shutdown.hasLastFlushBegun = true;
  const silence = new Promise((resolve) => setTimeout(resolve, 20, "silence"));
  for (const response of [begun, send()]) {
    assertEquals(await Promise.race([response, silence]), "silence");
  }
});
