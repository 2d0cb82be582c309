/**
 * A bare handler for HEAD, as in a first attempt: `URLPattern` and a `Map`. The second argument is
 * the catalogue.
 */

import { answer, findInMap } from "./items.ts";
import { serve } from "./serve.ts";

const pattern = new URLPattern({ pathname: "/audio/:token" });
const find = findInMap(Deno.args[1] ?? "");

serve((request) => {
  const found = pattern.exec(request.url);
  if (found === null) return new Response(null, { status: 404 });
  const { token = "" } = found.pathname.groups;
  const [status, headers] = answer(find, token, request.headers.get("if-none-match"));
  return new Response(null, { status, headers });
});
