import { assertEquals } from "@std/assert";
import { isPartOf } from "../../lib/lifecycle/route_name.ts";

Deno.test("isPartOf() takes the route itself, and names that begin with it and for", () => {
  const rows: [route: string, name: string, expected: boolean][] = [
    ["/v1", "/v1", true],
    ["/v1", "/v1 for acme", true],
    ["/v1", "/v1 for ", true],
    ["/v1", "/v1 for", false],
    ["/v1", "/v1 formerly", false],
    ["/v1", "/v1/songs", false],
    ["/v1", "/v10 for acme", false],
    ["/v1", "/v1/songs for acme", false],
    ["/v1 for acme", "/v1", false],
    ["/v1 for acme", "/v1 for acme for one week", true],
  ];
  for (const [route, name, expected] of rows) assertEquals(isPartOf(route, name), expected, name);
});
