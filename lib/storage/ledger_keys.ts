/**
 * The keys of the ledger as they are read: another version may have written them. A server only
 * writes, and never loads this.
 */

import { z } from "zod";
import { PHASES } from "../lifecycle/policy.ts";

const FACTS = ["calls", "first", "last"] as const;

/** What a key holds of a line. */
export type Fact = typeof FACTS[number];

/** Names come from clients, and end up on terminals and pages. */
const Name = z.string().regex(/^[\x20-\x7e]{1,64}$/);
/** The parts of a line's key. */
export const UsageKeyParts = z.tuple([
  z.literal("usage"),
  z.iso.date(),
  Name,
  Name,
  z.enum(PHASES),
  Name,
  Name,
  z.enum(FACTS),
]);
/** The parts of a beat's key. */
export const BeatKeyParts = z.tuple([z.literal("beat"), z.number(), z.string()]);
