import { loadConfig } from '../config';
import { systemClock } from '../core/clock';
import { createLog } from '../core/log';
import { runProcess } from '../core/process';
import { openDatabase } from '../db/client';
import { resumeByOperator, suspendByOperator } from '../mail/service';

const verbs = { suspend: suspendByOperator, resume: resumeByOperator } as const;

/** `npm run mail:suspend -- <id>`, `npm run mail:resume -- <id>`: stops a mail service or a sender domain, and lets it go on. */
runProcess(async () => {
  const [verb, id] = process.argv.slice(2);
  if ((verb !== 'suspend' && verb !== 'resume') || !id) throw new Error('usage: npm run mail:suspend -- <mls_… or dom_…>, npm run mail:resume -- <mls_… or dom_…>');
  const config = loadConfig();
  const db = openDatabase({ url: config.DATABASE_URL, max: 2, process: 'command', log: createLog('command', config.LOG_LEVEL) });
  try {
    const done = await verbs[verb]({ db, clock: systemClock }, id);
    if (!done) process.exitCode = 1;
    process.stdout.write(done ? `${id}: ${verb === 'suspend' ? 'suspended' : 'resumed'}.\n` : `There is no ${id} to ${verb}.\n`);
  } finally {
    await db.close();
  }
});
