/**
 * The web frameworks of the lifecycle library's recipes, pinned by the tests' lock.
 */

export { default as express } from "npm:express@5.3.0";
export { Hono } from "npm:hono@4.13.19";
export { serve } from "npm:@hono/node-server@2.1.8";
