import { Supervised, type Running } from '../../src/dev/supervised';
import { until } from '../support/until';

/** Processes that live only in this test: each ends when it is told to. */
class Processes {
  readonly all: { pid: number; end: () => void; stopped: boolean }[] = [];

  make(): Running {
    let end: () => void = () => undefined;
    const exited = new Promise<void>((resolve) => { end = resolve; });
    const process = { pid: 100 + this.all.length, end, stopped: false };
    this.all.push(process);
    return { pid: process.pid, exited, stop: async () => { process.stopped = true; end(); } };
  }

  get alive(): number {
    return this.all.filter(({ stopped }) => !stopped).length;
  }
}

function supervised(start: (spawned: (running: Running) => void, attempt: number) => Promise<Running>) {
  const said: string[] = [];
  let attempt = 0;
  const unit = new Supervised({ name: 'unit', say: (text) => said.push(text), start: (spawned) => start(spawned, (attempt += 1)) });
  return { unit, said };
}

test('what dies is started again', async () => {
  const processes = new Processes();
  const { unit, said } = supervised(async (spawned) => {
    const running = processes.make();
    spawned(running);
    return running;
  });
  await unit.start();
  processes.all[0]?.end();
  await until(() => said.includes('unit is back.'));
  expect(unit.pid).toBe(101);
  await unit.stop();
  expect(processes.all[1]?.stopped).toBe(true);
});

test('what is stopped is not started again', async () => {
  const processes = new Processes();
  const { unit, said } = supervised(async (spawned) => {
    const running = processes.make();
    spawned(running);
    return running;
  });
  await unit.start();
  await unit.stop();
  expect({ started: processes.all.length, alive: processes.alive, said }).toEqual({ started: 1, alive: 0, said: [] });
});

test('what has servers of its own is brought back before it is stopped', async () => {
  const processes = new Processes();
  let ready: () => void = () => undefined;
  const unit = new Supervised({
    name: 'host', say: () => undefined, hasServers: true, start: async (spawned) => {
      const running = processes.make();
      spawned(running);
      if (processes.all.length > 1) await new Promise<void>((done) => { ready = done; });
      return running;
    },
  });
  await unit.start();
  processes.all[0]?.end();
  await until(() => processes.all.length === 2);
  const stopped = unit.stop();
  await new Promise((done) => { setImmediate(done); });
  expect(processes.all[1]?.stopped).toBe(false);
  ready();
  await stopped;
  expect(processes.all[1]?.stopped).toBe(true);
});

test('a first start that fails is tried again, and given up after the fourth time', async () => {
  const { unit, said } = supervised(async (_, attempt) => { throw new Error(`failure ${attempt}`); });
  await expect(unit.start()).rejects.toThrow('failure 4');
  expect(said).toHaveLength(3);
});

test('a restart is tried until it succeeds', async () => {
  const processes = new Processes();
  const { unit, said } = supervised(async (spawned, attempt) => {
    if (attempt === 2 || attempt === 3) throw new Error('not yet');
    const running = processes.make();
    spawned(running);
    return running;
  });
  await unit.start();
  processes.all[0]?.end();
  await until(() => said.includes('unit is back.'));
  expect(processes.all).toHaveLength(2);
  await unit.stop();
});

test('a stop in the middle of a start ends the process that is starting', async () => {
  const processes = new Processes();
  const { unit } = supervised(async (spawned) => {
    const running = processes.make();
    spawned(running);
    await running.exited;
    throw new Error('ended before it was ready');
  });
  const started = unit.start();
  await until(() => processes.all.length === 1);
  await unit.stop();
  await expect(started).rejects.toThrow('ended before it was ready');
  expect(processes.alive).toBe(0);
});

test('a process that appears only after the stop is ended too, before stop() resolves', async () => {
  const processes = new Processes();
  let goOn: () => void = () => undefined;
  const preparing = new Promise<void>((resolve) => { goOn = resolve; });
  const { unit } = supervised(async (spawned) => {
    await preparing;
    const running = processes.make();
    spawned(running);
    await running.exited;
    throw new Error('stopped');
  });
  const started = unit.start().catch(() => undefined);
  const stopped = unit.stop();
  goOn();
  await Promise.all([stopped, started]);
  expect({ started: processes.all.length, alive: processes.alive }).toEqual({ started: 1, alive: 0 });
});
