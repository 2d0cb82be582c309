import { assert, assertEquals } from "@std/assert";
import { OTHER } from "../../lib/http/client_name.ts";
import { callerOf, ClientNames, MAX_NEW_NAMES_A_DAY } from "../../lib/usage/client_names.ts";
import { DAY, NOON } from "../support/counted_call.ts";

const once = () => 1;

/** Uses names in turn, and returns those admitted. */
function admitted(names: ClientNames, asked: readonly string[], now: number): string[] {
  for (const name of asked) names.nameFor(name);
  const refused = names.admit(once, now);
  return asked.filter((name) => !refused.has(name));
}

function invented(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

Deno.test("callerOf() prefers the operator's field, and for a browser the site that it is on", () => {
  const browser = { "User-Agent": "Mozilla/5.0 (X11)" };
  const uuid = "7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e";
  const rows: [fields: Record<string, string>, client: string, field?: string][] = [
    [{}, "(no User-Agent)"],
    [{ "User-Agent": "okhttp/4" }, "app okhttp"],
    [{ "User-Agent": uuid }, "(other)"],
    [{ "User-Agent": "okhttp/4", Origin: "https://a.test" }, "app okhttp"],
    [browser, "app Mozilla"],
    [{ ...browser, Origin: "https://Player.example.com:8443" }, "site player.example.com"],
    [{ ...browser, Origin: "null", Referer: "https://a.test/x?q=1#y" }, "site a.test"],
    [{ ...browser, Referer: `https://b.test/${uuid}` }, "site b.test"],
    [{ ...browser, Origin: "https://a.test", Referer: "https://b.test/" }, "site a.test"],
    [{ ...browser, Referer: `https://${uuid}.test/` }, "(other)"],
    [{ ...browser, Origin: "https://user-491511.test" }, "(other)"],
    [{ ...browser, Referer: "https://192.0.2.1/x" }, "app Mozilla"],
    [{ ...browser, Referer: "https://[2001:db8::1]/" }, "app Mozilla"],
    [{ ...browser, Referer: "https://user:pass@a.test/" }, "app Mozilla"],
    [{ ...browser, Referer: `https://${"a".repeat(76)}/` }, "app Mozilla"],
    [{ ...browser, Referer: "file:///home/jane" }, "app Mozilla"],
    [{ ...browser, Origin: "https://<b>" }, "app Mozilla"],
    [{ "X-Consumer": "Team 7", "User-Agent": "okhttp/4" }, "id Team 7", "x-consumer"],
    [{ "X-Consumer": uuid }, `id ${uuid}`, "x-consumer"],
    [{ "X-Consumer": "a".repeat(65) }, "(other)", "x-consumer"],
    [{ "X-Consumer": "ünï" }, "(other)", "x-consumer"],
    [{ "User-Agent": "okhttp/4" }, "app okhttp", "x-consumer"],
  ];
  for (const [fields, client, field] of rows) {
    assertEquals(callerOf(new Headers(fields), field).name, client, JSON.stringify(fields));
  }
});

Deno.test("ClientNames admits so many new names a day, and known ones on every day", () => {
  const names = new ClientNames();
  assertEquals(admitted(names, invented(400, "a"), NOON).length, 400);
  assertEquals(admitted(names, invented(400, "b"), NOON).length, MAX_NEW_NAMES_A_DAY - 400);
  names.know("known");
  assertEquals(admitted(names, ["c", "known", "a-0", OTHER, "(no User-Agent)"], NOON).length, 4);
  assertEquals(admitted(names, ["c", "a-0"], NOON + DAY), ["c", "a-0"]);
  assertEquals(admitted(names, invented(600, "d"), NOON + DAY).length, MAX_NEW_NAMES_A_DAY - 1);
});

Deno.test("ClientNames tracks a bounded number of new names before admission", () => {
  const names = new ClientNames();
  const counted = new Set(invented(10_000, "a").map((name) => names.nameFor(name)));
  assert(counted.size <= 2_001 && counted.has(OTHER), `${counted.size} names`);
});
