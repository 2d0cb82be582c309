#!/usr/bin/env node
import process from "node:process";
import { runLifecycle } from "./check.ts";

runLifecycle(process.argv.slice(2)).then(({ text, isUsageError, exitStatus }) => {
  console[isUsageError ? "error" : "log"](text);
  process.exitCode = exitStatus;
});
