/**
 * An independent parser of structured fields (RFC 9651).
 */

export { parseDictionary, parseItem } from "structured-headers";
