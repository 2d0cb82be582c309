/**
 * fast-check, for tests only.
 */

export { default } from "fast-check";
