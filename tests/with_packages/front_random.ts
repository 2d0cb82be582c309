/**
 * Clients and a backend that send at random what they should and should not, and leave at any time.
 * Nothing of it may end `lifecycle front`, and nothing of it may stay behind.
 */

import { assert, assertEquals } from "@std/assert";
import { deprecated, FrontProcess, onEachNode, test } from "../support/front.ts";
import { randomFrom } from "../support/random.ts";
import { HandBackend, Wire } from "../support/wire.ts";
import { until } from "../support/within.ts";

/** How long clients call, in milliseconds, and how many at a time. */
const [CALLING_MS, CLIENTS] = [5_000, 40];

const LONG = "x".repeat(200_000);

const REQUESTS = [
  "GET PATH HTTP/1.1\r\nHost: a\r\n\r\n",
  "HEAD PATH HTTP/1.1\r\nHost: a\r\n\r\n",
  `POST PATH HTTP/1.1\r\nHost: a\r\nContent-Length: ${LONG.length}\r\n\r\n${LONG}`,
  "POST PATH HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
  "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
  "POST PATH HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
  "GET PATH HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly",
  "GET PATH HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
  "GET PATH HTTP/1.0\r\n\r\n",
  "bad\r\n\r\n",
  "GET PATH HTTP/1.1\r\nHo",
];

const PATHS = ["/v1/a", "/v2/a", "/gone", "/deprecation"];

const ANSWERS = [
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  `HTTP/1.1 200 OK\r\nContent-Length: ${LONG.length}\r\n\r\n${LONG}`,
  `HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n${LONG}`,
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
  "2\r\nok\r\n0\r\nX-T: 1\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nabc",
  "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${LONG}`,
  "HTTP/1.1 999 \x01\r\n\r\n",
  "HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n",
  "garbage",
  "",
];

test("front survives whatever comes, and keeps nothing of it", () =>
  onEachNode(async (options) => {
    const random = randomFrom(Number(options.node));
    const below = (limit: number) => Math.floor(random() * limit);
    const some = <T>(from: readonly T[]) => from[below(from.length)] as T;
    const pause = (limit: number) => new Promise((resolve) => setTimeout(resolve, below(limit)));

    await using backend = new HandBackend(async (wire) => {
      while (await wire.head() !== undefined) {
        if (random() < 0.3) await pause(60);
        const answer = some(ANSWERS);
        await wire.write(random() < 0.2 ? answer.slice(0, below(answer.length)) : answer);
        if (random() < 0.4) return; // with what it has not read, which resets the connection
      }
    });
    const routes = { "/v1": deprecated(), "/gone": deprecated({ sunsetAt: "2021-01-01" }) };
    await using front = await FrontProcess.start(
      { upstream: backend.url, timeout: 1, routes },
      options,
    );
    const before = front.descriptors;
    const call = async () => {
      using client = await Wire.to(front.port);
      const requests = Array.from({ length: 1 + below(4) }, () => some(REQUESTS)).join("");
      const text = requests.replaceAll("PATH", () => some(PATHS));
      const sent = client.write(random() < 0.15 ? text.slice(0, below(text.length)) : text);
      const reading = random() < 0.9 ? client.skip(Infinity) : Promise.resolve();
      await pause(random() < 0.2 ? 1_500 : 120);
      client[Symbol.dispose]();
      await Promise.all([sent.catch(() => {}), reading.catch(() => {})]);
    };
    const end = performance.now() + CALLING_MS;
    let calls = 0;
    await Promise.all(Array.from({ length: CLIENTS }, async () => {
      while (performance.now() < end) {
        await call();
        calls++;
      }
    }));
    assert(calls > 100, `only ${calls} calls`);
    assert(!front.hasEnded, front.log);
    backend.closeAll(); // which whoever still uses one would not notice
    await until("the end of all", () => front.descriptors <= before, 20_000);
    const start = performance.now();
    await front.stop();
    assert(performance.now() - start < 5_000, "something kept it from stopping");
    const others = front.events("error")
      .filter(({ status }) => !["502", "504"].includes(String(status)));
    assertEquals(others, []);
  }));
