using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "fetch", worker = .fetch), (name = "hono", worker = .hono)],
  sockets = [
    (name = "fetch", http = (), service = "fetch"),
    (name = "hono", http = (), service = "hono"),
  ],
);
const fetch :Workerd.Worker = (
  modules = [(name = "main", esModule = embed "out/fetch.js")],
  compatibilityDate = "2026-04-01",
);
const hono :Workerd.Worker = (
  modules = [(name = "main", esModule = embed "out/hono_anywhere.js")],
  compatibilityDate = "2026-04-01",
);
