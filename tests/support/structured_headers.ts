/**
 * An independent parser of structured fields (RFC 9651).
 */

export { parseDictionary, parseItem } from "npm:structured-headers@2.1.0";
