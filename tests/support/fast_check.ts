/**
 * fast-check, which only the tests use: in the import map, every server would download it.
 */

export { default } from "npm:fast-check@4.10.2";
