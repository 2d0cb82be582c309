/** The variables of the environment, and of the file `.env` beside main.ts. */

import { join } from "node:path";
import * as util from "node:util"; // parseEnv is missing in Deno 2.6: see runtime.ts
import project from "../../deno.json" with { type: "json" };
import { ConfigError } from "./config.ts";
import type { Log } from "../log/log.ts";

export interface Variables {
  /** Looks up a variable: in the environment first, then in the file. */
  readonly get: (name: string) => string | undefined;
  /** Warnings about names in the file that are no settings, or whose value in the file is not used. */
  readonly warnings: readonly string[];
}

const ENV_FILE = join(import.meta.dirname ?? "", "../../.env");

/** Variables that Deno reads itself, before the file is read. */
const OF_DENO = /^(?:DENO|OTEL)_/;

/**
 * Reads the file, unless there is none, or `--deny-read` excludes it.
 *
 * @throws {ConfigError} If it cannot be read, because other settings would apply without it.
 */
export function readVariables(path = ENV_FILE): Variables {
  const file = readFile(path);
  const get = (name: string) => Deno.env.get(name) ?? (OF_DENO.test(name) ? undefined : file[name]);
  const known = project.permissions.default.env.allow.filter((name) => !OF_DENO.test(name));
  const unknown = Object.keys(file).filter((name) => !known.includes(name));
  const overridden = known.filter((name) => {
    const value = Deno.env.get(name);
    return value !== undefined && file[name] !== undefined && value !== file[name];
  });
  return { get, warnings: [...unknownWarning(unknown), ...overriddenWarning(overridden)] };
}

export function warnOfVariables({ warnings }: Variables, log: Log): void {
  for (const message of warnings) log({ event: "warning", message });
}

/** Names that are no settings may be mistyped. */
function unknownWarning(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return [
    `Nothing reads ${names.join(", ")} in .env: is it a mistyped setting? ` +
    "Variables for Deno, such as OTEL_…, belong in the process's environment",
  ];
}

/** Commands would use another database than the server if only one of them had the variable. */
function overriddenWarning(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const differ = names.length === 1 ? "has another value" : "have other values";
  return [
    `${names.join(", ")} ${differ} in .env than in the environment, which is used: ` +
    "unset what was not set for this process only",
  ];
}

function readFile(path: string): Record<string, string | undefined> {
  if (Deno.permissions.querySync({ name: "read", path }).state === "denied") return {};
  let isThere = false;
  try {
    Deno.lstatSync(path);
    isThere = true; // even if it is a broken link
    // Reading a pipe would wait until somebody writes into it.
    if (!Deno.statSync(path).isFile) throw new Error("it is not a file");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(path));
    return Object.assign({}, ...text.split("\n").map(readLine));
  } catch (error) {
    if (!isThere && error instanceof Deno.errors.NotFound) return {};
    const reason = error instanceof TypeError ? "it is not UTF-8" : (error as Error).message;
    throw new ConfigError(`${path} cannot be read (${reason})`);
  }
}

/** Parses a line by itself, because parseEnv takes the lines after an open quote for its value. */
function readLine(line: string, index: number): Record<string, string | undefined> {
  if (!/^\s*(?:#|$)|=/.test(line)) throw new Error(`line ${index + 1} is not NAME=VALUE`);
  const isOpen = /^(?!\s*#)[^=]*=\s*(["'`])(?![^]*\1)/.test(line);
  if (isOpen) throw new Error(`line ${index + 1}: a quote is not closed`);
  return util.parseEnv(line);
}
