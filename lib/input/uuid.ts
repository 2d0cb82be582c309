/** Version 4 UUIDs (RFC 9562 §5.4), for engines without a function that validates them. */

/** The pattern of a UUID in lower case, for GLOB and for regular expressions. */
export const UUID_4_PATTERN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx"
  .replaceAll("x", "[0-9a-f]");
