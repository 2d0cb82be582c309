import { assert, assertEquals } from "@std/assert";
import { clientOf } from "../../lib/http/client_name.ts";
import { NAMED_USER_AGENTS } from "../support/user_agents.ts";

Deno.test("clientOf() returns the name of the product in a User-Agent", () => {
  for (const [name, userAgent] of NAMED_USER_AGENTS) {
    assertEquals(clientOf(userAgent), name, userAgent);
  }
  assertEquals(clientOf(null), "(no User-Agent)");
  for (let code = 0; code < 0x3000; code++) {
    const char = String.fromCharCode(code);
    for (const userAgent of [char, `a${char}b/1 (${char}; c${char})`, char.repeat(99)]) {
      const name = clientOf(userAgent);
      assert(/^[^\p{C}]{1,64}$/u.test(name) && name === name.trim(), JSON.stringify(name));
    }
  }
});
