/** What tests read from pages in Markdown. */

/** The fragments that lead to the headings of a page. */
export function fragmentsIn(page: string): string[] {
  const headings = page.replaceAll(/^```.*?^```/gms, "").matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading.toLowerCase().replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-")
  );
}
