/**
 * fast-check, for tests only: if it were in the import map, every server would download it.
 */

export { default } from "fast-check";
