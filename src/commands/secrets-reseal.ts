import { loadConfig } from '../config';
import { createLog } from '../core/log';
import { runProcess } from '../core/process';
import { Secrets } from '../core/secrets';
import { openDatabase } from '../db/client';
import { resealAll } from '../db/reseal';

/** `npm run secrets:reseal`: every secret of the database is sealed with the first key of HOLDFAST_MASTER_KEY; then the others may be taken away. */
runProcess(async () => {
  const config = loadConfig();
  const db = openDatabase({ url: config.DATABASE_URL, max: 2, process: 'command', log: createLog('command', config.LOG_LEVEL) });
  try {
    const resealed = await resealAll(db.prisma, new Secrets(config.HOLDFAST_MASTER_KEY));
    process.stdout.write(`${resealed} secrets have a new seal.\n`);
  } finally {
    await db.close();
  }
});
