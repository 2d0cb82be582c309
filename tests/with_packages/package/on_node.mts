// What the programs on Node share.

import { retire } from "@media-head/lifecycle";
import { Readable } from "node:stream";
import { policy } from "./policy.ts";
import { broken, options, parts } from "./shared.mts";

export { isOld } from "./policy.ts";

export const retired = retire(policy, options);

export const stream = () => Readable.from(parts(), { objectMode: false });
export const breaking = () => Readable.from(broken(), { objectMode: false });
