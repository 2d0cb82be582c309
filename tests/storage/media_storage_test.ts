import { openEngine } from "../../lib/storage/sqlite/engine.ts";
import { openLocal } from "../support/local_storage.ts";
import { openMemory } from "../support/memory_storage.ts";
import { needing } from "../support/permissions.ts";
import { testMediaStorage } from "./media_storage_suite.ts";

testMediaStorage("MediaStorage in memory", openMemory);
testMediaStorage(
  "MediaStorage on SQLite in memory",
  async () => openMemory(await openEngine("sqlite::memory:")),
);
testMediaStorage("MediaStorage on files", () => openLocal(), needing("files"));
