import "reflect-metadata";
import { Controller, Get, Module, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Response } from "express";
import { breaking, retired, stream } from "./on_node.mts";
import { CACHE, COOKIES, FIELDS, ORIGIN } from "./shared.mts";

type Way = (response: Response) => unknown;
export const ways: Way[] = [
  (response) => response.set(FIELDS).send("old"),
  (response) => response.set(FIELDS).type("text").end("old"),
  (response) => stream().pipe(response.set(FIELDS)),
  (response) => {
    response.set({ ...FIELDS, "Set-Cookie": COOKIES, "Cache-Control": CACHE });
    response.status(200).end("old");
  },
];
const routes: Record<string, Way> = {
  ...Object.fromEntries(ways.map((way, index) => [`ways/${index}`, way])),
  redirect: (response) => response.redirect("/v1/ways/0"),
  broken: (response) => breaking().on("error", () => response.destroy()).pipe(response),
  error() {
    throw new Error("wrong");
  },
};
/** Its methods are the routes. Decorators are called as functions, since Node strips types only. */
class Old {}
for (const [path, way] of Object.entries(routes)) {
  const descriptor = { value: (response: Response) => void way(response) };
  Object.defineProperty(Old.prototype, path, descriptor);
  Get(path)(Old.prototype, path, descriptor);
  Res()(Old.prototype, path, 0);
}
Controller("v1")(Old);
class App {}
Module({ controllers: [Old] })(App);

export const listen = async () => {
  const app = await NestFactory.create(App, { logger: false });
  app.enableCors({ origin: ORIGIN });
  app.use("/v1", retired);
  return await app.listen(0, "127.0.0.1");
};
