#!/usr/bin/env node
import process from "node:process";
import { runCheck } from "./check.ts";

const { text, exitStatus } = await runCheck(process.argv.slice(2));
console.log(text);
process.exitCode = exitStatus;
