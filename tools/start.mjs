// `npm start`: prepares the clone and becomes the supervisor (src/dev.ts) in this same process.
import { createRequire } from 'node:module';
import { prepare } from './prepare.mjs';
import { say } from './steps.mjs';

const help = `npm start: runs Holdfast on this machine.

Installs what is missing, generates the Prisma client, builds, starts PostgreSQL and Temporal and the processes of Holdfast,
and prints the addresses, a demo account and the first commands to try. Ctrl-C stops everything.

  npm start -- --help   this text

Everything it keeps is in .holdfast/ (delete it to begin anew). Settings are environment variables; README.md has the table.
For example: API_ADDR=127.0.0.1:4000 npm start`;

if (process.argv.includes('--help') || process.argv.includes('-h')) {
  say(help);
} else {
  try {
    await prepare();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
  process.setSourceMapsEnabled(true);
  createRequire(import.meta.url)('../dist/src/dev.js');
}
