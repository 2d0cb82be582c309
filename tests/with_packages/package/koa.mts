import Koa, { type Context } from "koa";
import { breaking, isOld, retired, stream } from "./on_node.mts";
import { CACHE, COOKIES, FIELDS, NEXT, ORIGIN } from "./shared.mts";

const app = new Koa();
app.silent = true;
app.use((context, next) => {
  context.set("Access-Control-Allow-Origin", ORIGIN);
  return next();
});
app.use((context, next) => isOld(context) ? retired(context.req, context.res, next) : next());

const answer = (context: Context, body: unknown) => {
  context.set({ "Cache-Control": CACHE, "Link": NEXT });
  context.set("Set-Cookie", COOKIES);
  context.type = "text";
  context.body = body;
};
export const ways: ((context: Context) => void)[] = [
  (context) => answer(context, "old"),
  (context) => answer(context, Buffer.from("old")),
  (context) => answer(context, stream()),
  (context) => answer(context, new Blob(["old"])),
  (context) => {
    context.body = new Response("old", { headers: { "Cache-Control": CACHE, "Link": NEXT } });
    context.append("Set-Cookie", COOKIES);
  },
  (context) => {
    for (const value of [CACHE, "public"]) context.append("Cache-Control", value);
    context.append("Link", [NEXT, "</b>; rel=prev"]);
    context.cookies.set("a", "1");
    context.cookies.set("b", "2");
    context.response.body = "old";
  },
  (context) => {
    answer(context, "old");
    context.flushHeaders();
  },
  (context) => {
    context.respond = false;
    context.res.writeHead(200, FIELDS).end("old");
  },
];
app.use((context) => {
  const way = ways[Number(/^\/v1\/ways\/(\d+)$/i.exec(context.path)?.[1])];
  if (way !== undefined) way(context);
  else if (context.path === "/v1/redirect") context.redirect("/v1/ways/0");
  else if (context.path === "/v1/error") context.throw(500, "wrong");
  else if (context.path === "/v1/broken") context.body = breaking();
});
export const listen = () => app.listen(0, "127.0.0.1");
