/** Parsing and validating lines to import, with the members that `media export` prints. */

import { z } from "zod";
import { RefusedError } from "../../errors/refused_error.ts";
import { parseInstant } from "../../http/timestamp.ts";
import { quotedClearly } from "../../input/printable.ts";
import { parseLanguageTag } from "../language_tag.ts";
import { isPublicUrl, parseLocation } from "../location.ts";
import { kindOf, parseMediaType } from "../media_type.ts";
import { FILE_NAME, parseFileName } from "../publish.ts";
import { storable, validatorIn } from "../publish_url.ts";
import { type Kind, MAX_LOCATION, MAX_STATED } from "../../storage/item.ts";
import { parseToken } from "../../storage/token.ts";

/**
 * Returns the refusal of a line for the value of a member.
 *
 * @param kind The kind of refusal. Default: the reason, if it has no value in it.
 */
export function refusalOfMember(
  name: string,
  value: unknown,
  { reason, kind = reason }: { readonly reason: string; readonly kind?: string },
): RefusedError {
  return new RefusedError(`"${name}" is ${shown(value)}; ${reason}`, { kind: `${name}: ${kind}` });
}

/** Describes a value, by its beginning if it is long. */
export function shown(value: unknown): string {
  if (typeof value === "string") return quotedClearly(beginningOf(value));
  return typeof value === "object" && value !== null
    ? Array.isArray(value) ? "an array" : "an object"
    : String(value);
}

/** Describes a line, without its line break. */
export function shownLine(text: string): string {
  return shown(text.replace(/\r*\n$/, ""));
}

function beginningOf(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}

/**
 * Returns a schema for strings that `parse` accepts. `parse` may throw a {@linkcode RefusedError}.
 */
function read<T>(expected: string, parse: (text: string) => T | undefined) {
  const error = `expected ${expected}`;
  return z.string({ error }).transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: error });
    return z.NEVER;
  });
}

const TOKEN = read("a version 4 UUID", parseToken);
const KIND = z.enum(["audio", "video"], { error: 'expected "audio" or "video"' });
const MEDIA_TYPE = read("an audio or video type, e.g. audio/mpeg", parseMediaType);
const STATED = read(`1 to ${MAX_STATED} printable ASCII characters`, storable);
const VALIDATOR = read('an ETag like "abc" or an HTTP date, in printable ASCII', (text) => {
  const validator = validatorIn(text);
  if (validator !== undefined || !/^[!#-~]{1,64}$/.test(text)) return validator;
  const tag = text.replace(/^(W\/)?(.*)$/, '$1"$2"');
  const inCsv = `"${tag.replaceAll('"', '""')}"`;
  throw refusalOfMember("validator", text, {
    reason: `expected an ETag in its quotes: ${inCsv} in CSV, ${JSON.stringify(tag)} in JSON`,
    kind: "no quotes",
  });
});
const BYTES = { error: "expected a number of bytes, from 1 on" }; // what is empty is no media
const LENGTH = z.preprocess(
  (value) => typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value,
  z.int(BYTES).positive(BYTES),
);
const SHA_256 = read(
  "64 hexadecimal digits",
  (text) => /^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined,
);
const NAME = read(FILE_NAME, parseFileName);
const LANGUAGE = read("a BCP 47 language tag, e.g. en-GB", parseLanguageTag);
const TIME = "an ISO 8601 date, or a date and time with an offset";
// A time in the future is accepted, because the clock of the machine that published may be ahead.
const PUBLISHED_AT = read(`${TIME}, from 1970 on`, (text) => {
  const instant = parseInstant(text);
  return instant !== undefined && instant >= 0 ? instant : undefined;
});
const OBJECT = read(
  `s3://BUCKET/KEY in Unicode, of ${MAX_LOCATION} characters at most`,
  (text) => {
    const isFit = text.length <= MAX_LOCATION && text.isWellFormed();
    return isFit && /^s3:\/\/[^/\0]+\/[^\0]+$/.test(text) ? text : undefined;
  },
);
const URL_LOCATION = read(
  "an http(s) URL, or s3://BUCKET/KEY",
  (text) => isPublicUrl(text) ? parseLocation(text) : undefined,
);

const ITEM = {
  state: z.literal("published", { error: 'expected "published" or "unpublished"' }).exactOptional(),
  token: TOKEN.exactOptional(),
  kind: KIND.exactOptional(),
  publishedAt: PUBLISHED_AT.exactOptional(),
};
const DESCRIBED = { ...ITEM, name: NAME.exactOptional(), language: LANGUAGE.exactOptional() };
const CONTENT = {
  ...DESCRIBED,
  type: MEDIA_TYPE.exactOptional(),
  length: LENGTH.exactOptional(),
  sha256: SHA_256.exactOptional(),
};

const SCHEMAS = {
  file: z.strictObject({ ...CONTENT, path: z.string().min(1, { error: "expected a path" }) }),
  object: z.strictObject({ ...CONTENT, location: OBJECT, validator: VALIDATOR.exactOptional() }),
  url: z.strictObject({
    ...ITEM,
    location: URL_LOCATION,
    type: STATED.exactOptional(),
    length: LENGTH.exactOptional(),
    validator: VALIDATOR.exactOptional(),
  }),
  content: z.strictObject({ sha256: SHA_256, length: LENGTH, type: MEDIA_TYPE, ...DESCRIBED }),
  tombstone: z.strictObject({
    state: z.literal("unpublished"),
    token: TOKEN,
    kind: KIND,
    unpublishedAt: PUBLISHED_AT.exactOptional(),
  }),
};

/** The names of all members. */
export const MEMBERS: readonly string[] = [
  ...new Set(Object.values(SCHEMAS).flatMap(({ shape }) => Object.keys(shape))),
];

type LineOf<S extends keyof typeof SCHEMAS> =
  & { readonly source: S }
  & Readonly<z.infer<typeof SCHEMAS[S]>>;

/** A line of any source. */
type Line = ContentLine | LineOf<"url"> | LineOf<"content"> | LineOf<"tombstone">;

/** A valid line whose content may have to be read, for example to detect its kind. */
export type ContentLine = LineOf<"file"> | LineOf<"object">;

export type ValidLine =
  | ContentLine
  | LineOf<"url"> & { readonly kind: Kind }
  | LineOf<"content"> & { readonly kind: Kind }
  | LineOf<"tombstone">;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Members by name, as they were read. */
type Members = Readonly<Record<string, unknown>>;

/** The members of a line before validation. */
export interface LineMembers {
  readonly members: Members;
  /** How values that are missing are written, by member. */
  readonly missing: Readonly<Record<string, string>>;
}

/**
 * Validates a line.
 *
 * @param derivesTokens Whether an empty token is derived, as one that is not there.
 * @throws {RefusedError} If it is invalid.
 */
export function validateLine(
  { members, missing }: LineMembers,
  { derivesTokens = false } = {},
): ValidLine {
  const { token, ...others } = members;
  if (token !== "" && token !== null) return validate(members, missing);
  if (derivesTokens) return validate(others, missing);
  const expected = "expected a version 4 UUID";
  const reason = sourceOf(members) === "tombstone"
    ? expected
    : `${expected}; with --derive-tokens, it is derived from the content or the URL`;
  throw refusalOfMember("token", missing["token"] ?? token, { reason });
}

function validate(raw: Members, missing: LineMembers["missing"]): ValidLine {
  const empty = Object.keys(raw).find((name) => raw[name] === null);
  if (empty !== undefined) {
    const remedy = 'jq --compact-output "del(..|nulls)"';
    throw refusalOfMember(empty, null, {
      reason: `leave it out, e.g. with ${remedy}`,
      kind: "null",
    });
  }
  const source = sourceOf(raw);
  const { success, data, error } = SCHEMAS[source].safeParse(raw);
  if (!success) {
    // A wrong member comes first, because a missing one may belong to another source.
    const isWrong = ({ code, path: [name = ""] }: z.core.$ZodIssue) =>
      code === "unrecognized_keys" || Object.hasOwn(raw, name);
    const issue = error.issues.find(isWrong) ?? error.issues[0];
    throw refusalOfIssue(raw, { source, missing, issue: issue as z.core.$ZodIssue });
  }
  const line = { source, ...data } as Line;
  if (line.source === "tombstone") return line;
  const { kind = kindOf(line.type) } = line; // the stated one, even if the type names another
  if (kind !== undefined) return { ...line, kind };
  if (line.source === "file" || line.source === "object") return line;
  throw refusalOfMissing("kind", 'expected "audio" or "video"', missing);
}

/**
 * Parses a line of JSON.
 *
 * @throws {RefusedError} If it is not an object, or has a member twice.
 */
export function parseLine(bytes: Uint8Array): Members {
  const text = decodeLine(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch { // refused like other values
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RefusedError(`${shownLine(text)} is not a JSON object`, { kind: "no JSON object" });
  }
  // A text without names in its values has as many of them as the object has members.
  const isPlain = text.match(/"\s*:/g)?.length === Object.keys(value).length;
  const name = isPlain ? undefined : repeatedNameIn(text);
  if (name === undefined) return value as Members;
  throw new RefusedError(`${shown(name)} occurs twice; expected it once`, {
    kind: "repeated member",
  });
}

/** Decodes a line without its byte order mark. */
export function decodeLine(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new RefusedError(`${shownLine(new TextDecoder().decode(bytes))} is not UTF-8`, {
      kind: "not UTF-8",
    });
  }
}

/** Returns a name that an object has twice, which `JSON.parse` lets pass. */
function repeatedNameIn(json: string): string | undefined {
  const names = new Set<string>();
  let depth = 0;
  for (const [token, isName] of json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[[\]{}]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (isName !== undefined && depth === 1) {
      const name: string = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
      if (names.has(name)) return name;
      names.add(name);
    }
  }
}

function sourceOf(raw: Members): ValidLine["source"] {
  if (raw["state"] === "unpublished") return "tombstone";
  if ("path" in raw) return "file";
  if (!("location" in raw)) return "content";
  const { location } = raw;
  return typeof location === "string" && location.startsWith("s3:") ? "object" : "url";
}

/** Returns the refusal of a line for an issue that the schema of its source has found. */
function refusalOfIssue(
  raw: Members,
  { source, missing, issue }: {
    readonly source: ValidLine["source"];
    readonly missing: LineMembers["missing"];
    readonly issue: z.core.$ZodIssue;
  },
): RefusedError {
  const other = source === "content" ? ", or a path or location instead" : "";
  if (issue.code === "unrecognized_keys") {
    const known = Object.keys(SCHEMAS[source].shape).join(", ");
    return new RefusedError(`"${issue.keys[0]}" is unknown here; expected ${known}${other}`, {
      kind: "unknown member",
    });
  }
  const name = String(issue.path[0]);
  if (Object.hasOwn(raw, name)) return refusalOfMember(name, raw[name], { reason: issue.message });
  return refusalOfMissing(name, issue.message + other, missing);
}

/** Returns the refusal of a line for a member that is not there, or whose value is missing. */
function refusalOfMissing(
  name: string,
  expected: string,
  missing: LineMembers["missing"],
): RefusedError {
  const reason = `"${name}" is missing; ${expected}`;
  const [written] = name in missing ? [name] : Object.keys(missing);
  const kind = `${name} is missing`;
  if (written === undefined) return new RefusedError(reason, { kind });
  const fact = `"${written}" is ${shown(missing[written])}, which CSV has for a missing value`;
  return new RefusedError(`${reason}. ${fact}; JSON lines can have it as a value`, { kind });
}
