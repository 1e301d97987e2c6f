import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { newId } from '../../src/core/ids';
import { FakeBackend } from '../../src/adapters/postgres-backend/fake';
import type { PostgresHost } from '../../src/edge/postgres/host/host';
import type { Login, PostgresBackend } from '../../src/postgres/ports';
import { planLimits, scramVerifier, newPassword } from '../../src/postgres/rules';
import { HostSite, newService as serviceOf, type TestService } from '../support/postgres-host';
import { TestPoolServer } from '../support/postgres-pool-server';

/** One suite for every adapter: what the workflows rely on, told through what a customer would see. */
type Subject = {
  backend: PostgresBackend;
  /** Logs in as a customer who knows the password; false when he is refused. */
  admits(service: TestService, login: Login, password: string): Promise<boolean>;
  /** Whether a service has a server of its own: a change of plan restarts it, and it has an identity. */
  ownServer: boolean;
  close(): Promise<void>;
};

const roomFor = 40;
const capacityBytes = roomFor * planLimits.trial.storageBytes;

async function openFake(): Promise<Subject> {
  const backend = new FakeBackend({ publicAddress: () => ({ host: 'localhost', port: 6432 }), capacityBytes });
  return {
    backend, ownServer: true,
    admits: async ({ ref }, login, password) => {
      const [, salt = ''] = /\$4096:([^$]+)\$/.exec(login.verifier) ?? [];
      return backend.admits(ref.serviceId, login.name, scramVerifier(password, Buffer.from(salt, 'base64')));
    },
    close: async () => undefined,
  };
}

async function openEmbedded(): Promise<Subject> {
  const site = await HostSite.make({ PG_CAPACITY_BYTES: capacityBytes });
  const host: PostgresHost = await site.start();
  const backend = site.backend();
  return {
    backend, ownServer: true,
    admits: async ({ ref }, login, password) => {
      const instanceRef = (await backend.inventory()).find((item) => item.serviceId === ref.serviceId && !item.retained)?.instanceRef;
      if (!instanceRef) return false;
      const { slot } = JSON.parse(await readFile(join(site.dataDir, 'instances', instanceRef, 'instance.json'), 'utf8'));
      const client = new pg.Client({ host: '127.0.0.1', port: site.config.PG_PORT_BASE + Number(slot), user: login.name, password, database: 'app' });
      client.on('error', () => undefined);
      return client.connect().then(() => client.end().then(() => true), () => false);
    },
    close: async () => {
      backend.close();
      await host.stop();
      await site.remove();
    },
  };
}

async function openHostPool(): Promise<Subject> {
  const server = await TestPoolServer.start();
  return {
    backend: server.backend({ capacityBytes }), ownServer: false,
    admits: async (service, login, password) => {
      const client = server.customer({ ...service, login, password });
      return client.connect().then(() => client.end().then(() => true), () => false);
    },
    close: () => server.stop(),
  };
}

describe.each([['fake', openFake], ['embedded', openEmbedded], ['host_pool', openHostPool]] as const)('%s', (_name, open) => {
  let subject: Subject;
  beforeAll(async () => { subject = await open(); });
  afterAll(() => subject.close());

  const version = '18';
  const newService = () => serviceOf('trial', subject.ownServer ? 'instance' : 'database');
  const place = ({ ref }: TestService) => subject.backend.place({ ...ref, version });
  const ensureInstance = ({ ref }: TestService) => subject.backend.ensureInstance({ ...ref, version });
  const ensureAccess = ({ ref }: TestService, logins: Login[], endSessionsOf: string[] = []) => subject.backend.ensureAccess({ ...ref, logins, endSessionsOf });
  const later = (service: TestService): TestService => ({ ...service, ref: { ...service.ref, generation: service.ref.generation + 1 } });
  const itemsOf = async ({ ref }: TestService) => (await subject.backend.inventory('test')).filter((item) => item.serviceId === ref.serviceId);

  async function serving(service = newService()): Promise<TestService> {
    await place(service);
    await ensureInstance(service);
    await ensureAccess(service, [service.login]);
    return service;
  }

  it('places a service once, however often it is asked', async () => {
    const service = newService();
    const first = await place(service);
    expect(await place(service)).toEqual(first);
    expect(await itemsOf(service)).toEqual([{ instanceRef: first.instanceRef, serviceId: service.ref.serviceId, retained: false }]);
  });

  it('makes one instance of its own per service, however often it is asked', async () => {
    const [service, other] = [newService(), newService()];
    const made = await ensureInstance(service);
    expect(await ensureInstance(service)).toEqual(made);
    const { systemId } = await ensureInstance(other);
    if (subject.ownServer) expect(systemId).not.toBe(made.systemId);
    expect(await itemsOf(service)).toHaveLength(1);
  });

  it('lets in exactly the login it was given, twice the same', async () => {
    const service = await serving();
    await ensureAccess(service, [service.login]);
    expect(await subject.admits(service, service.login, service.password)).toBe(true);
    expect(await subject.admits(service, service.login, newPassword())).toBe(false);
    expect((await subject.backend.observe(service.ref)).verifiers).toEqual({ [service.login.name]: service.login.verifier });
  });

  it('forgets the old password with the new verifier', async () => {
    const service = await serving();
    const password = newPassword();
    const changed = { ...service.login, verifier: scramVerifier(password) };
    await ensureAccess(later(service), [changed], [service.login.name]);
    expect(await subject.admits(service, changed, password)).toBe(true);
    expect(await subject.admits(service, changed, service.password)).toBe(false);
  });

  it('has two logins side by side, and takes away the one that is not wanted any more', async () => {
    const service = await serving();
    const password = newPassword();
    const second = { ...service.login, name: service.ref.names.logins[1], verifier: scramVerifier(password) };
    await ensureAccess(service, [service.login, second]);
    expect(await subject.admits(service, service.login, service.password)).toBe(true);
    expect(await subject.admits(service, second, password)).toBe(true);
    await ensureAccess(later(service), [{ ...service.login, enabled: false }, second]);
    expect(await subject.admits(service, service.login, service.password)).toBe(false);
    expect(await subject.admits(service, second, password)).toBe(true);
  });

  it('blocks and opens again', async () => {
    const service = await serving();
    await subject.backend.setAccessMode({ ...later(service).ref, mode: 'blocked', stop: false });
    await subject.backend.setAccessMode({ ...later(service).ref, mode: 'blocked', stop: false });
    expect(await subject.admits(service, service.login, service.password)).toBe(false);
    expect(await subject.backend.observe(service.ref)).toMatchObject({ mode: 'blocked', compute: 'running' });
    await subject.backend.setAccessMode({ ...later(service).ref, mode: 'full', stop: false });
    expect(await subject.admits(service, service.login, service.password)).toBe(true);
    expect(await subject.backend.observe(service.ref)).toMatchObject({ mode: 'full' });
  });

  it('stops, and stays closed when started until it is opened', async () => {
    const service = await serving();
    await subject.backend.setAccessMode({ ...service.ref, mode: 'blocked', stop: true });
    expect(await subject.backend.observe(service.ref)).toMatchObject({ compute: 'stopped', mode: 'blocked', verifiers: {} });
    await ensureInstance(later(service));
    expect(await subject.admits(service, service.login, service.password)).toBe(false);
    await subject.backend.setAccessMode({ ...later(service).ref, mode: 'full', stop: false });
    expect(await subject.admits(service, service.login, service.password)).toBe(true);
    expect(await subject.backend.observe(service.ref)).toMatchObject({ compute: 'running' });
  });

  it('takes new limits', async () => {
    const service = await serving();
    const starter = { ...later(service).ref, limits: planLimits.starter };
    expect(await subject.backend.setLimits(starter)).toEqual({ restarted: subject.ownServer });
    expect(await subject.admits(service, service.login, service.password)).toBe(true);
  });

  it('leaves nothing after a destruction, which may be repeated', async () => {
    const service = await serving();
    await subject.backend.destroy({ ...later(service).ref, retain: false });
    await subject.backend.destroy({ ...later(service).ref, retain: false });
    expect(await itemsOf(service)).toEqual([]);
    expect(await subject.admits(service, service.login, service.password)).toBe(false);
    await expect(subject.backend.observe(service.ref)).rejects.toMatchObject({ code: 'backend_error' });
  });

  it('retains the data of a service when asked, and purges it when asked', async () => {
    const service = await serving();
    await subject.backend.destroy({ ...later(service).ref, retain: true });
    await subject.backend.destroy({ ...later(service).ref, retain: true });
    expect(await itemsOf(service)).toEqual([expect.objectContaining({ retained: true })]);
    expect(await subject.admits(service, service.login, service.password)).toBe(false);
    await subject.backend.destroy({ ...later(service).ref, retain: false });
    expect(await itemsOf(service)).toEqual([]);
  });

  it('retains nothing of a service that was never made', async () => {
    const service = newService();
    await place(service);
    await subject.backend.destroy({ ...later(service).ref, retain: true });
    expect(await itemsOf(service)).toEqual([]);
  });

  it('destroys and blocks what was never there', async () => {
    const service = newService();
    await subject.backend.setAccessMode({ ...service.ref, mode: 'blocked', stop: false });
    await subject.backend.destroy({ ...service.ref, retain: true });
    expect(await itemsOf(service)).toEqual([]);
  });

  it('refuses every late call of an older generation, also after the destruction', async () => {
    const service = await serving();
    await subject.backend.destroy({ ...later(service).ref, retain: false });
    const stale = { code: 'stale_generation' };
    await expect(place(service)).rejects.toMatchObject(stale);
    await expect(ensureInstance(service)).rejects.toMatchObject(stale);
    await expect(ensureAccess(service, [service.login])).rejects.toMatchObject(stale);
    await expect(subject.backend.setLimits(service.ref)).rejects.toMatchObject(stale);
    await expect(subject.backend.setAccessMode({ ...service.ref, mode: 'full', stop: false })).rejects.toMatchObject(stale);
    await expect(subject.backend.destroy({ ...service.ref, retain: false })).rejects.toMatchObject(stale);
    expect(await itemsOf(service)).toEqual([]);
  });

  it('gives no access to what was not made', async () => {
    const service = newService();
    await expect(ensureAccess(service, [service.login])).rejects.toMatchObject({ code: 'backend_error' });
    await expect(subject.backend.setLimits(service.ref)).rejects.toMatchObject({ code: 'backend_error' });
  });

  it('measures', async () => {
    const service = await serving();
    const seen = await subject.backend.observe(service.ref);
    expect(seen.usedBytes).toBeGreaterThan(1_000_000);
    if (subject.ownServer) expect(seen.systemId).toMatch(/^\d{15,20}$/);
    else expect(seen.systemId).toBeNull();
  });

  it('promises no more bytes than it has, and counts what it retains', async () => {
    const services = Array.from({ length: roomFor }, () => newService());
    const placed: TestService[] = [];
    let refused: unknown;
    for (const service of services) {
      const error: unknown = await place(service).then(() => null, (reason: unknown) => reason);
      if (error) {
        refused = error;
        break;
      }
      placed.push(service);
    }
    expect(refused).toMatchObject({ code: 'no_capacity' });
    for (const service of placed) await subject.backend.destroy({ ...service.ref, retain: false });
    const after = newService();
    await place(after);
    await subject.backend.destroy({ ...after.ref, retain: false });
  });

  it('keeps backups, or does not pretend to', async () => {
    const service = newService();
    if (subject.backend.can.pointInTime) {
      await expect(subject.backend.drill(service.ref.serviceId, newId('bak'))).rejects.toMatchObject({ code: 'restore_unavailable' });
      return;
    }
    await expect(subject.backend.snapshot({ ...service.ref, backupId: 'bak_1' })).rejects.toMatchObject({ code: 'backend_error' });
    await expect(subject.backend.restore({ ...service.ref, source: { kind: 'retained' } })).rejects.toMatchObject({ code: 'restore_unavailable' });
    await subject.backend.dropBackup(service.ref.serviceId, 'bak_1');
  });
});
