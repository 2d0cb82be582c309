import { fastify, type RouteHandler } from "fastify";
import { breaking, isOld, retired, stream } from "./on_node.mts";
import { CACHE, COOKIES, FIELDS, NEXT, ORIGIN } from "./shared.mts";

const app = fastify();
app.addHook("onRequest", (_, reply, done) => {
  reply.header("Access-Control-Allow-Origin", ORIGIN);
  done();
});
app.addHook("onRequest", (_, reply, done) => {
  for (const [name, value = ""] of Object.entries(reply.getHeaders())) {
    reply.raw.setHeader(name, value);
  }
  done();
});
app.addHook("onRequest", (request, reply, done) => {
  if (isOld(request)) retired(request.raw, reply.raw, done);
  else done();
});

export const ways: RouteHandler[] = [
  (_, reply) => reply.headers(FIELDS).send("old"),
  (_, reply) => {
    reply.header("Cache-Control", CACHE).header("Link", [NEXT, "</b>; rel=prev"])
      .header("Set-Cookie", "a=1").header("Set-Cookie", "b=2");
    return Promise.resolve("old");
  },
  (_, reply) => reply.type("text/plain").headers(FIELDS).send(stream()),
  (_, reply) => reply.headers(FIELDS).send(new TextEncoder().encode("old")),
  (_, reply) => {
    const headers = { "Cache-Control": CACHE, "Link": NEXT };
    return reply.header("Set-Cookie", COOKIES).send(new Response("old", { headers }));
  },
  (_, reply) => reply.hijack().raw.writeHead(200, FIELDS).end("old"),
];
for (const [index, handler] of ways.entries()) {
  app.route({ method: ["GET", "HEAD"], url: `/v1/ways/${index}`, handler });
}
app.get("/v1/redirect", (_, reply) => reply.redirect("/v1/ways/0"));
app.get("/v1/error", () => {
  throw new Error("wrong");
});
app.get("/v1/broken", (_, reply) => reply.send(breaking()));
export const listen = async () => {
  await app.listen({ port: 0, host: "127.0.0.1" });
  return app.server;
};
