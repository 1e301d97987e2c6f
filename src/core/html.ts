/** HTML that is already safe; everything else is escaped by `html`. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = string | Html | readonly (string | Html)[];

/** A template whose parts are text, escaped, or HTML made by itself. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + string + (index < parts.length ? render(parts[index] ?? '') : ''), ''));
}

function render(part: Part): string {
  if (part instanceof Html) return part.text;
  return typeof part === 'string' ? part.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`) : part.map(render).join('');
}
