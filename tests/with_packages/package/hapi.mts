import { type Lifecycle, type ResponseObject, server as createServer } from "@hapi/hapi";
import { breaking, isOld, retired, stream } from "./on_node.mts";
import { CACHE, COOKIES, FIELDS, NEXT, ORIGIN } from "./shared.mts";

const routes = { response: { ranges: false } }; // hapi offers ranges on a GET alone
const server = createServer({ port: 0, host: "127.0.0.1", debug: false, routes });
server.ext("onRequest", ({ raw }, h) => {
  raw.res.setHeader("Access-Control-Allow-Origin", ORIGIN);
  return h.continue;
});
server.ext("onRequest", ({ raw: { req, res } }, h) => {
  return isOld(req) ? retired(req, res, () => h.continue) ?? h.abandon : h.continue;
});

const answer = (response: ResponseObject) => {
  for (const cookie of COOKIES) response.header("Set-Cookie", cookie, { append: true });
  return response.header("Cache-Control", CACHE).header("Link", NEXT);
};
export const ways: Lifecycle.Method[] = [
  (_, h) => answer(h.response("old")),
  (_, h) => Promise.resolve(answer(h.response(Buffer.from("old")))),
  (_, h) => answer(h.response(stream())),
  ({ raw }, h) => {
    raw.res.writeHead(200, FIELDS).end("old");
    return h.abandon;
  },
];
for (const [index, handler] of ways.entries()) {
  server.route({ method: "GET", path: `/v1/ways/${index}`, handler });
}
server.route({
  method: "GET",
  path: "/v1/redirect",
  handler: (_, h) => h.redirect("/v1/ways/0"),
});
server.route({
  method: "GET",
  path: "/v1/error",
  handler() {
    throw new Error("wrong");
  },
});
server.route({ method: "GET", path: "/v1/broken", handler: (_, h) => h.response(breaking()) });
export const listen = async () => {
  await server.start();
  return server.listener;
};
