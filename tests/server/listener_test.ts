import { assertEquals } from "@std/assert";
import { closeWhenStopping } from "../../lib/server/listener.ts";

Deno.test("closeWhenStopping() asks clients to close their connections as soon as the process is stopping", async () => {
  const stopping = new AbortController();
  const shared = new Response();
  const handle = closeWhenStopping(() => shared, stopping.signal);
  const send = async () => await handle(new Request("http://test/"));
  assertEquals((await send()).headers.get("connection"), null);
  stopping.abort();
  assertEquals((await send()).headers.get("connection"), "close");
  assertEquals(shared.headers.get("connection"), null, "others may share it");
});
