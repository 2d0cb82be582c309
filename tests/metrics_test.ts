import { assertEquals } from "@std/assert";
import { requestRaw } from "./support/raw_http.ts";
import { ServerProcess } from "./support/server.ts";

interface Metrics {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly sum?: { readonly dataPoints: readonly Point[] };
        readonly gauge?: { readonly dataPoints: readonly Point[] };
      }[];
    }[];
  }[];
}

interface Point {
  readonly asInt?: string | number;
  readonly asDouble?: number;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue: string };
  }[];
}

/** A collector that keeps the last value of every series: `"name a=1,b=2"`. */
function startCollector() {
  const values = new Map<string, number>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const text = await request.text();
    if (!new URL(request.url).pathname.endsWith("/v1/metrics")) return new Response("{}");
    for (const { scopeMetrics } of (JSON.parse(text) as Metrics).resourceMetrics) {
      for (const { name, sum, gauge } of scopeMetrics.flatMap(({ metrics }) => metrics)) {
        if (!name.startsWith("media_head")) continue;
        for (const point of [...sum?.dataPoints ?? [], ...gauge?.dataPoints ?? []]) {
          const attributes = point.attributes.map(({ key, value }) =>
            `${key}=${value.stringValue}`
          );
          const series = `${name} ${attributes.sort().join(",")}`;
          values.set(series, Number(point.asInt ?? point.asDouble));
        }
      }
    }
    return new Response("{}", { headers: { "Content-Type": "application/json" } });
  });
  return { values, server };
}

Deno.test("a server process exports calls and removal dates to an OTLP collector", async () => {
  const { values, server: collector } = startCollector();
  const server = await ServerProcess.start({
    OTEL_DENO: "true",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.addr.port}`,
    OTEL_METRIC_EXPORT_INTERVAL: "200",
    SUNSET_AT: "2999-01-01",
  });
  for (const target of ["/audio/x", "/audio/x", "/video/x", "/media/x"]) {
    await requestRaw(server.port, "HEAD", target);
  }
  const request = (route: string) =>
    `media_head.deprecated.requests method=HEAD,phase=deprecated,route=${route},status=4xx`;
  const deadline = performance.now() + 30_000;
  while (!values.has(request("/video/:token")) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await server.stop();
  await server[Symbol.asyncDispose]();
  await collector.shutdown();
  assertEquals(Object.fromEntries([...values].sort()), {
    [request("/audio/:token")]: 2,
    [request("/video/:token")]: 1,
    "media_head.sunset route=/audio/:token": Date.parse("2999-01-01") / 1000,
    "media_head.sunset route=/video/:token": Date.parse("2999-01-01") / 1000,
  });
});
