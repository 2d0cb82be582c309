/** Tokens of HTTP: the names of fields, the parts of a media type, and other words. */

/** The source of a regular expression for a token (RFC 9110 §5.6.2). */
export const HTTP_TOKEN = "[\\w!#$%&'*+.^`|~-]+";
