import fastify from "fastify";
import { answer, tell } from "./work.js";

const app = fastify();

app.head("/audio/:token", (request, reply) => {
  const [status, fields] = answer(request.params.token, request.headers["if-none-match"]);
  reply.code(status).headers(fields).send();
});

await app.listen({ host: "127.0.0.1", port: 0 });
tell(app.server.address());
