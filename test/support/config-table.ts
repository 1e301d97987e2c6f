import { configTable } from '../../src/config';

const begin = '<!-- configuration: made by `npm run config:table` -->';
const end = '<!-- end of configuration -->';

/** The configuration as a Markdown table, as it stands in README.md. */
export function configTableText(): string {
  const rows = configTable().map(({ key, default: value, description }) => `| \`${key}\` | ${value ? `\`${value}\`` : ''} | ${escape(description)} |`);
  return ['| Key | Default | Meaning |', '|---|---|---|', ...rows].join('\n');
}

/** The README with its table replaced. Errors: it has no place for one. */
export function replaceConfigTable(readme: string, table: string): string {
  const [before, rest] = readme.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error('README.md has no place marked for the configuration table.');
  return `${before}${begin}\n\n${table}\n\n${end}${after}`;
}

function escape(text: string): string {
  return text.replaceAll('|', '\\|');
}
