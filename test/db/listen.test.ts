import { createListener, type Listener } from '../../src/db/listen';
import { finishStep, settleOperation, startStep } from '../../src/operations/store';
import { acceptOperation, eventually, silent } from '../support/accepted-work';
import { withDatabase } from '../support/database';

const db = withDatabase();
const open: Listener[] = [];
afterEach(async () => {
  for (const listener of open.splice(0)) await listener.close();
});

function listen(channel: string) {
  const heard: (string | null)[] = [];
  const listener = createListener({ url: db.url, process: 'heard', log: silent });
  open.push(listener);
  const stop = listener.listen(channel, (payload) => heard.push(payload));
  return { heard, listener, stop, listening: () => eventually(async () => heard.includes(null)) };
}

const cut = () => db.database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'holdfast-heard-listen'`);

test('hears what is told on its channel, and no other', async () => {
  const { heard, listening } = listen('here');
  await listening();
  await db.database.pool.query(`select pg_notify('elsewhere', 'no'), pg_notify('here', 'yes')`);
  await eventually(async () => heard.includes('yes'));
  expect(heard).toEqual([null, 'yes']);
});

test('listeners of one process share a connection, also one that comes later for another channel', async () => {
  const { listener, listening } = listen('first');
  await listening();
  const heard: (string | null)[] = [];
  listener.listen('second', (payload) => heard.push(payload));
  await eventually(async () => heard.includes(null));
  await db.database.pool.query(`select pg_notify('second', 'yes')`);
  await eventually(async () => heard.includes('yes'));
  const { rows } = await db.database.pool.query(`select count(*)::int as connections from pg_stat_activity where application_name = 'holdfast-heard-listen'`);
  expect(rows).toEqual([{ connections: 1 }]);
});

test('after its connection was cut it listens again and says that something may have been missed', async () => {
  const { heard, listening } = listen('here');
  await listening();
  await cut();
  await eventually(async () => heard.length === 2);
  await db.database.pool.query(`select pg_notify('here', 'again')`);
  await eventually(async () => heard.includes('again'));
  expect(heard).toEqual([null, null, 'again']);
});

test('who has stopped hears nothing more', async () => {
  const { heard, stop, listening } = listen('here');
  await listening();
  stop();
  const other = listen('here');
  await other.listening();
  await db.database.pool.query(`select pg_notify('here', 'yes')`);
  await eventually(async () => other.heard.includes('yes'));
  expect(heard).toEqual([null]);
});

test('an operation tells of its opening and of each change of state; steps tell nothing', async () => {
  const { heard, listening } = listen('operation');
  await listening();
  const { id } = await acceptOperation(db.database);
  for (const step of ['ensurePlacement', 'ensureInstance']) {
    await startStep(db.database, id, step);
    await finishStep(db.database, id, step, 'succeeded');
  }
  await settleOperation(db.database.prisma, id, 'succeeded');
  await eventually(async () => heard.includes(`${id}:succeeded`));
  expect(heard).toEqual([null, `${id}:pending`, `${id}:running`, `${id}:succeeded`]);
});
