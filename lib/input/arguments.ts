/** Arguments of commands. */

import { InvalidArgumentError, Option } from "commander";
import { WrongUsageError } from "../errors/refused_error.ts";
import { HTTP_TOKEN } from "../http/http_token.ts";
import type { Field } from "../http/outcome.ts";
import { quoted, withoutPassword } from "./printable.ts";

/** Returns a parser that refuses an argument if `parse` returns `undefined`. */
export function argument<T>(expected: string, parse: (text: string) => T | undefined) {
  return (text: string): T => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`Expected ${expected}.`);
    return value;
  };
}

/** Returns a parser for a whole number from 1 on. */
export function numberArgument(what: string, max: number) {
  return argument(
    `${what} from 1 to ${max}`,
    (text) => /^[1-9]\d*$/.test(text) && Number(text) <= max ? Number(text) : undefined,
  );
}

const HTTP_URL = 'a URL that starts with "https://" or "http://"';

/**
 * Returns a URL as it is.
 *
 * @throws {WrongUsageError} If it is none, and may have a password, which `commander` would print.
 */
export function httpUrlArgument(text: string): string {
  const shown = withoutPassword(text);
  if (shown !== text && !isHttpUrl(text)) {
    throw new WrongUsageError(`${quoted(shown)} is invalid: expected ${HTTP_URL}`);
  }
  return parseHttpUrl(text);
}

const parseHttpUrl = argument(HTTP_URL, (text) => isHttpUrl(text) ? text : undefined);

function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

/** Creates the option `--header`, which can be repeated, for fields of each request of a kind. */
export function headerOption(kind: string): Option {
  return new Option(
    "--header <line>",
    `a field to send with each ${kind}, as "NAME: VALUE"; repeatable`,
  ).argParser((line: string, others: Field[] = []) => [...others, fieldArgument(line)]);
}

/** Matches a field name, and its value (RFC 9110 §5.1 and §5.5). */
const FIELD_LINE = new RegExp(`^(${HTTP_TOKEN}):[\t ]*([\t -~\x80-\xff]*)$`);

/** Parses a field name and value. */
const fieldArgument = argument(
  '"NAME: VALUE", where NAME is a field name, and VALUE has only printable characters of ISO 8859-1',
  (line): Field | undefined => {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    return name === undefined || value === undefined ? undefined : [name, value];
  },
);
