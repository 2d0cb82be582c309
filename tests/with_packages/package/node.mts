import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { breaking, isOld, retired, stream } from "./on_node.mts";
import { FIELDS, ORIGIN } from "./shared.mts";

export const ways: ((response: ServerResponse) => unknown)[] = [
  (response) => response.writeHead(200, FIELDS).end("old"),
  (response) => response.writeHead(200, Object.entries(FIELDS).flat()).end("old"),
  (response) => response.setHeaders(new Map(Object.entries(FIELDS))).end("old"),
  (response) => stream().pipe(response.setHeaders(new Map(Object.entries(FIELDS)))),
];
function handle({ url = "" }: IncomingMessage, response: ServerResponse): unknown {
  const way = ways[Number(/^\/v1\/ways\/(\d+)$/i.exec(url)?.[1])];
  if (way !== undefined) return way(response);
  if (url === "/v1/redirect") return response.writeHead(302, { Location: "/v1/ways/0" }).end();
  if (url === "/v1/broken") return breaking().on("error", () => response.destroy()).pipe(response);
  response.statusCode = url === "/v1/error" ? 500 : 404;
  return response.end();
}
const server = createServer((request, response) => {
  const answer = () => handle(request, response);
  return isOld(request) ? retired(request, response, answer) : answer();
});
server.prependListener("request", (_, response) => {
  response.setHeader("Access-Control-Allow-Origin", ORIGIN);
});
export const listen = () => server.listen(0, "127.0.0.1");
