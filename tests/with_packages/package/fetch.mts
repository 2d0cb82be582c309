// A handler for Deno and Workers, with nothing around it but withLifecycle().

import { withLifecycle } from "@media-head/lifecycle";
import { isOld, policy } from "./policy.ts";
import { broken, bytes, control, options, ORIGIN, PAIRS, parts, upgrade } from "./shared.mts";

const manual = { encodeBody: "manual" }; // on Workers: the content is compressed already

export const ways: (() => Response | Promise<Response>)[] = [
  () => new Response("old", { headers: PAIRS }),
  () => Promise.resolve(new Response(new Blob(["old"]), { headers: new Headers(PAIRS) })),
  () => {
    const response = new Response(new TextEncoder().encode("old"));
    for (const [name, value] of PAIRS) response.headers.append(name, value);
    return response;
  },
  () => new Response(bytes(parts()), { headers: PAIRS }),
  () => {
    const content = new Blob(["old"]).stream().pipeThrough(new CompressionStream("gzip"));
    const headers: [string, string][] = [...PAIRS, ["Content-Encoding", "gzip"]];
    return new Response(content, { headers, ...manual });
  },
];
const kept = new Response(null, { status: 204, headers: PAIRS });

function handle(request: Request): Response | Promise<Response> {
  const { pathname } = new URL(request.url);
  const way = ways[Number(/^\/v1\/ways\/(\d+)$/i.exec(pathname)?.[1])];
  if (way !== undefined) return way();
  if (pathname === "/v1/kept") return kept;
  if (pathname === "/v1/socket") return upgrade(request);
  if (pathname === "/v1/redirect") return Response.redirect(new URL("/v1/ways/0", request.url));
  if (pathname === "/v1/broken") return new Response(bytes(broken()));
  return new Response("not found", { status: 404 });
}
const open = async (request: Request) => {
  const response = await handle(request);
  if (response.status === 200) response.headers.set("Access-Control-Allow-Origin", ORIGIN);
  return response;
};
const retired = withLifecycle(open, policy, {
  ...options,
  refusalFields: () => [["Access-Control-Allow-Origin", ORIGIN]],
});
const site = {
  fetch: (request: Request) => isOld(request) ? retired(request) : open(request),
};
export default {
  fetch: (request: Request) =>
    request.url.includes("/control?") ? new Response(control(request.url)) : site.fetch(request),
};
