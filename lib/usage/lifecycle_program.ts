#!/usr/bin/env node
/** Runs the program `lifecycle`. */

import process from "node:process";
import { exitStatusOfCrash } from "../errors/exit_status.ts";

const args = process.argv.slice(2);
import("./lifecycle.ts")
  .then(({ runLifecycle }) => runLifecycle(args))
  .catch((error) => exitStatusOfCrash(error, args))
  .then((exitStatus) => {
    process.exitCode = exitStatus;
  });
