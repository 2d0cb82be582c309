/**
 * Text in HTML.
 */

/** Makes a text safe in the content and in the attributes of an element. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
