import { createSocket, type Socket } from 'node:dgram';
import { openSubscription } from '../../src/billing/service';
import { newId } from '../../src/core/ids';
import { inTransaction } from '../../src/db/transaction';
import { writeRecords, type RecordRow } from '../../src/dns/store/records';
import { bumpZone, lockAnyZone } from '../../src/dns/store/zones';
import { nextVersion } from '../../src/dns/versions';
import { queryFor } from '../../test/support/dns-client';
import type { Product } from '../../test/support/product';

export type BenchZone = { id: string; path: string; domain: string };

/** A served zone with this many A records `n<i>`, of an organisation with the largest plan; written at once. */
export async function makeZone(product: Product, domain: string, count: number): Promise<BenchZone> {
  const { status, body } = await product.ask('POST', '/dns/zones', { body: { domain, mode: 'full_hosting' } });
  const id = idOf(body['zone']);
  if (status !== 200) throw new Error(`No zone: ${JSON.stringify(body)}`);
  await inTransaction(product.database, async (tx) => {
    const { orgId } = product.tenant;
    await openSubscription(tx, { orgId, projectId: null, product: 'dns', resourceId: orgId, plan: 'business' });
    const zone = await lockAnyZone(tx, id);
    if (!zone) throw new Error('The zone was just made.');
    const next = nextVersion(zone);
    const created = Array.from({ length: count }, (_, i): RecordRow => ({
      id: newId('rec'), zoneId: zone.id, type: 'A', name: `n${i}`, value: `8.8.${(i >> 8) % 256}.${i % 256}`, ttl: 300, priority: null, proxied: false, originProtocol: null, originPort: null,
      originPath: null, originHostHeader: null, comment: null, managed: null, managedId: null, challenge: false, version: next.version, createdAt: new Date(), updatedAt: new Date(), deletedAt: null,
    }));
    await writeRecords(tx, next.version, { deleted: [], updated: [], created });
    const changes = created.map((record) => ({ recordId: record.id, before: null, after: record }));
    await bumpZone(tx, { id: zone.id, ...next, recordCount: count, proxiedCount: 0, all: true }, { actor: { kind: 'system', id: null, displayName: null }, requestId: null, created: count, updated: 0, deleted: 0, changes });
  }, { timeoutMs: 60_000 });
  await product.database.pool.query('analyze dns_record');
  return { id, path: `/dns/zones/${id}`, domain };
}

/** The id of a resource in an answer. */
export function idOf(resource: unknown): string {
  if (typeof resource === 'object' && resource !== null && 'id' in resource && typeof resource.id === 'string') return resource.id;
  throw new Error(`Not a resource: ${JSON.stringify(resource)}`);
}

/** The limit on record writes is no part of what is measured. */
export async function forgetRates(product: Product): Promise<void> {
  await product.database.pool.query(`delete from rate_limit where key like 'dns-record-writes%'`);
}

/** One socket to one server, asking one question again and again. */
export class Asker {
  private readonly socket: Socket = createSocket('udp4');

  constructor(private readonly server: { host: string; port: number }) {}

  /** When the first answer that pleases came; asks again as soon as one did not. Errors: none pleased within 10 s. */
  until(name: string, type: string, pleases: (answer: Buffer) => boolean): Promise<number> {
    const question = queryFor(name, type);
    const ask = (): void => this.socket.send(question, this.server.port, this.server.host);
    return new Promise((done, fail) => {
      const again = setInterval(ask, 100); // for a packet that was lost
      const late = setTimeout(() => finish(() => fail(new Error(`${name} did not change.`))), 10_000);
      const finish = (settle: () => void): void => {
        clearInterval(again);
        clearTimeout(late);
        this.socket.removeAllListeners('message');
        settle();
      };
      this.socket.on('message', (answer) => {
        const at = performance.now();
        if (pleases(answer)) finish(() => done(at));
        else setImmediate(ask);
      });
      ask();
    });
  }

  close(): void {
    this.socket.close();
  }
}

/** Whether the message answers with this address: its last four octets, for one record of four. */
export function hasAddress(answer: Buffer, address: string): boolean {
  return answer.readUInt16BE(6) > 0 && answer.includes(Buffer.from(address.split('.').map(Number)));
}

/** NXDOMAIN. */
export function isAbsent(answer: Buffer): boolean {
  return (answer.readUInt16BE(2) & 0xf) === 3;
}
