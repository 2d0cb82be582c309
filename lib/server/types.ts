/**
 * Every type in the signatures that `main.ts` exports.
 */

export type { Body, Content, Field } from "../http/answer.ts";
export type { Awaitable } from "../http/awaitable.ts";
export type { ByteRange } from "../http/byte_range.ts";
export type { EntityTag } from "../http/entity_tag.ts";
export type { Validators } from "../http/preconditions.ts";
export type { AfterSunset, Interval, Phase, Policy } from "../lifecycle/policy.ts";
export type { ContentReference } from "../storage/content.ts";
export type { Generations, Versioned } from "../storage/generations.ts";
export type { Kind, LinkedItem, LookupResult, PublishedItem, Storage } from "../storage/storage.ts";
export type { Token } from "../storage/token.ts";
export type { Dependencies, DocumentOptions, DocumentRoom, HandlerConfig } from "./assembly.ts";
export type { Log, LogEvent } from "./log.ts";
export type { AnswerClass, Counter, Meter } from "./meter.ts";
export type { Representation } from "./representation.ts";
export type { Handler } from "./responder.ts";
export type { DocumentName, Route } from "./route.ts";
