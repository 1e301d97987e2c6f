import { loadConfig } from '../config';
import { createLog } from '../core/log';
import { runProcess } from '../core/process';
import { openDatabase } from '../db/client';
import { createEngine, createResetLink } from '../identity/service';

/** `npm run user:reset-link <email>`: where account mail is off, the operator hands this link over. It works once, for an hour. */
runProcess(async () => {
  const [email] = process.argv.slice(2);
  if (!email) throw new Error('usage: npm run user:reset-link <email>');
  const config = loadConfig();
  const db = openDatabase({ url: config.DATABASE_URL, max: 2, process: 'command', log: createLog('command', config.LOG_LEVEL) });
  try {
    const link = await createResetLink({ db, config, engine: createEngine(db, config) }, email);
    if (link === null) process.exitCode = 1;
    process.stdout.write(link === null ? `There is no account with the address ${email}.\n` : `${link}\n`);
  } finally {
    await db.close();
  }
});
