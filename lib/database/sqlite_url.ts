/**
 * Matches `sqlite:PATH`. What follows `sqlite:` must not be the URL or the address of a database
 * server: SQLite would create a file of that name, with the password in it.
 */
export const SQLITE_URL = /^sqlite:(?![a-z][a-z0-9+.-]*:\/\/|\/\/[^/])./is;
