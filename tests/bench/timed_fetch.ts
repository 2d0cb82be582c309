/**
 * A GET from a bucket that fails when the store stops sending: a stream in JavaScript, and a timer.
 */

import { serveFetched } from "./signed_fetch.ts";

/** Milliseconds for the next bytes. */
const TIMEOUT = 30_000;

serveFetched((body) => {
  if (body === null) return null;
  const reader = body.getReader();
  let readingSince = Infinity;
  let isLate = false;
  const timer = setInterval(() => {
    isLate = performance.now() - readingSince >= TIMEOUT;
    if (isLate) reader.cancel();
  }, TIMEOUT / 10);
  return new ReadableStream({
    async pull(controller) {
      readingSince = performance.now();
      const { value } = await reader.read();
      readingSince = Infinity;
      if (value !== undefined) return controller.enqueue(value);
      clearInterval(timer);
      if (isLate) throw new Error("the store stopped sending");
      controller.close();
    },
    cancel() {
      clearInterval(timer);
      reader.cancel();
    },
  }, { highWaterMark: 0 });
});
