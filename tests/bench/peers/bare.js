/** `Deno.serve`, `URLPattern` and a map, as in a first attempt. */

import { answer, tell } from "./work.js";

const pattern = new URLPattern({ pathname: "/audio/:token" });

Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: tell }, (request) => {
  const found = pattern.exec(request.url);
  if (found === null) return new Response(null, { status: 404 });
  const { token } = found.pathname.groups;
  const [status, headers] = answer(token, request.headers.get("if-none-match"));
  return new Response(null, { status, headers });
});
