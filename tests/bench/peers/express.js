import express from "express";
import { answer, tell } from "./work.js";

const app = express();

app.head("/audio/:token", (request, response) => {
  const [status, fields] = answer(request.params.token, request.headers["if-none-match"]);
  response.status(status).set(fields).end();
});

const server = app.listen(0, "127.0.0.1", () => tell(server.address()));
