#!/usr/bin/env node
import process from "node:process";
import { runLifecycle } from "./check.ts";

const { text, exitStatus } = await runLifecycle(process.argv.slice(2));
console.log(text);
process.exitCode = exitStatus;
