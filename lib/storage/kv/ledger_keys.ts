/**
 * What the ledger holds, as it is read: another version may have written it. Zod is loaded with
 * this, so a server loads it after its start.
 */

import { z } from "zod";
import { PHASES } from "../../lifecycle/policy.ts";
import { IMPACTS } from "../ledger.ts";

const FACTS = ["calls", "first", "last"] as const;

/** What a key holds of a row. */
export type Fact = typeof FACTS[number];

/** Names come from clients, and end up on terminals and pages. */
const Name = z.string().regex(/^[\x20-\x7e]{1,64}$/);
/** The parts of a row's key. */
export const UsageKeyParts = z.tuple([
  z.literal("call"),
  z.iso.date(),
  Name,
  Name,
  z.enum(PHASES),
  Name,
  z.enum(IMPACTS),
  Name,
  z.enum(FACTS),
]);
/** The parts of a watch's key. */
export const WatchKeyParts = z.tuple([z.literal("watch"), z.number(), Name]);
/** What is kept of a watch besides its key. */
export const WatchValue = z.object({
  until: z.number(),
  end: z.enum(["stopped", "gone"]).exactOptional(),
});
