import { loadConfig } from '../config';
import { createLog } from '../core/log';
import { runProcess } from '../core/process';
import { openDatabase } from '../db/client';
import { inTransaction } from '../db/transaction';
import { resumeByOperator, suspendByOperator } from '../postgres/service';

const verbs = { suspend: suspendByOperator, resume: resumeByOperator } as const;

/** `npm run postgres:suspend -- <id>`, `npm run postgres:resume -- <id>`: what an operator suspends its customer cannot resume. The relay starts the run. */
runProcess(async () => {
  const [verb, id] = process.argv.slice(2);
  if ((verb !== 'suspend' && verb !== 'resume') || !id) throw new Error('usage: npm run postgres:suspend -- <pg_…>, npm run postgres:resume -- <pg_…>');
  const config = loadConfig();
  const db = openDatabase({ url: config.DATABASE_URL, max: 2, process: 'command', log: createLog('command', config.LOG_LEVEL) });
  try {
    const { operation } = await inTransaction(db, (tx) => verbs[verb](tx, id));
    process.stdout.write(`${id}: accepted, operation ${operation.id}.\n`);
  } finally {
    await db.close();
  }
});
