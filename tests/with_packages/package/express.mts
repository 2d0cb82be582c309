import compression from "compression";
import cors from "cors";
import express, { type RequestHandler } from "express";
import helmet from "helmet";
import { writeFileSync } from "node:fs";
import { breaking, retired, stream } from "./on_node.mts";
import { CACHE, FIELDS, NEXT, ORIGIN } from "./shared.mts";

const app = express();
app.use(helmet(), cors({ origin: ORIGIN }), compression());
app.use("/v1", retired);
app.use(express.json());

const file = `${import.meta.dirname}/old.txt`;
writeFileSync(file, "old");
export const ways: RequestHandler[] = [
  (_, response) => void response.set(FIELDS).send("old"),
  (_, response) =>
    void response.header("Cache-Control", CACHE).links({ next: "/a" }).cookie("a", "1")
      .append("Set-Cookie", "b=2").type("text").end("old"),
  (_, response) =>
    void response.append("Cache-Control", CACHE).append("Cache-Control", "public")
      .append("Link", [NEXT, "</b>; rel=prev"]).append("Set-Cookie", ["a=1", "b=2"])
      .sendFile(file, { cacheControl: false }),
  (_, response) => response.sendFile(file, { headers: FIELDS, cacheControl: false }),
  (_, response) => void response.set(FIELDS).format({ text: () => response.send("old") }),
  (_, response) => void response.writeHead(200, FIELDS).end("old"),
  (_, response) => void response.writeHead(200, "Fine", Object.entries(FIELDS).flat()).end("old"),
  (_, response) => void response.setHeaders(new Map(Object.entries(FIELDS))).end("old"),
  (_, response) => void stream().pipe(response.set(FIELDS).vary("Accept")),
  (_, response) => {
    response.set(FIELDS).flushHeaders();
    response.end("old");
  },
];
for (const [index, way] of ways.entries()) app.get(`/v1/ways/${index}`, way);
app.get("/v1/redirect", (_, response) => response.redirect("/v1/ways/0"));
app.get("/v1/error", () => {
  throw new Error("wrong");
});
app.get("/v1/broken", (_, response) => {
  const content = breaking().on("error", () => response.destroy());
  content.pipe(response);
});
export const listen = () => app.listen(0, "127.0.0.1");
