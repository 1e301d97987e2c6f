import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { CertificateStatus } from '../state';

export type CertificateRow = {
  id: Id<'crt'>; zoneId: string; orgId: Id<'org'>; projectId: Id<'prj'>; primaryHostname: string; hostnames: string[]; status: CertificateStatus; issuer: 'self_signed' | 'acme';
  method: 'dns01' | 'http01' | null; generation: number; serialNumber: string | null; notBefore: Date | null; notAfter: Date | null; renewAt: Date | null; attempts: number;
  nextAttemptAt: Date | null; lastErrorCode: string | null; lastErrorMessage: string | null; statusAt: Date; createdAt: Date; updatedAt: Date;
};

export const certificateColumns = `c.id, c.zone_id as "zoneId", c.org_id as "orgId", c.project_id as "projectId", c.primary_hostname as "primaryHostname", c.hostnames, c.status, c.issuer, c.method,
  c.generation, c.serial_number as "serialNumber", c.not_before as "notBefore", c.not_after as "notAfter", c.renew_at as "renewAt", c.attempts, c.next_attempt_at as "nextAttemptAt",
  c.last_error_code as "lastErrorCode", c.last_error_message as "lastErrorMessage", c.status_at as "statusAt", c.created_at as "createdAt", c.updated_at as "updatedAt"`;

/** Certificates of a zone, newest first, after the key; without those that serve nobody any more. */
export function listCertificates(db: Db, zoneId: string, page: { after: PageKey | null; limit: number }): Promise<CertificateRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<CertificateRow>(db, `select ${certificateColumns} from gateway_certificate c where c.zone_id = $1 and c.status <> 'retired'
    and ($2::timestamptz is null or (c.created_at, c.id) < ($2::timestamptz, $3::text)) order by c.created_at desc, c.id desc limit $4::int`, zoneId, createdAt, id, page.limit);
}

export async function findCertificate(db: Db, zoneId: string, certificateId: string): Promise<CertificateRow | null> {
  const [row] = await rows<CertificateRow>(db, `select ${certificateColumns} from gateway_certificate c where c.zone_id = $1 and c.id = $2 and c.status <> 'retired'`, zoneId, certificateId);
  return row ?? null;
}

/** Every certificate of a zone that serves or will serve. */
export function certificatesOfZone(db: Db, zoneId: string): Promise<CertificateRow[]> {
  return rows<CertificateRow>(db, `select ${certificateColumns} from gateway_certificate c where c.zone_id = $1 and c.status <> 'retired' order by c.id`, zoneId);
}

export type NewCertificate = { id: Id<'crt'>; zoneId: string; orgId: string; projectId: string; primaryHostname: string; hostnames: readonly string[]; issuer: 'self_signed' | 'acme'; method: 'dns01' | 'http01' | null };

/** Null when the name has one already: of two who ask at once one makes it. */
export async function insertCertificate(tx: Tx, wanted: NewCertificate): Promise<CertificateRow | null> {
  const [row] = await rows<CertificateRow>(tx, `insert into gateway_certificate as c (id, zone_id, org_id, project_id, primary_hostname, hostnames, issuer, method)
    values ($1, $2, $3, $4, $5, $6::text[], $7, $8) on conflict (zone_id, primary_hostname) where status <> 'retired' do nothing returning ${certificateColumns}`,
  wanted.id, wanted.zoneId, wanted.orgId, wanted.projectId, wanted.primaryHostname, wanted.hostnames, wanted.issuer, wanted.method);
  return row ?? null;
}

/** The row, locked, whatever became of it. */
export async function lockCertificate(tx: Tx, certificateId: string): Promise<CertificateRow | null> {
  const [row] = await rows<CertificateRow>(tx, `select ${certificateColumns} from gateway_certificate c where c.id = $1 for update`, certificateId);
  return row ?? null;
}

/** A new intent: runs that speak for an older generation give way. `issuer` and `method` are the present ones. */
export async function beginGeneration(tx: Tx, certificateId: string, present: Pick<CertificateRow, 'issuer' | 'method'>): Promise<CertificateRow | null> {
  const [row] = await rows<CertificateRow>(tx, `update gateway_certificate c set generation = generation + 1, issuer = $2, method = $3, next_attempt_at = null, next_key_sealed = null, next_chain = null, order_url = null,
    updated_at = now() where id = $1 returning ${certificateColumns}`, certificateId, present.issuer, present.method);
  return row ?? null;
}

/** Compare and set; false when the status is no longer the one it was. */
export async function moveCertificate(tx: Tx, certificateId: string, from: CertificateStatus, to: CertificateStatus): Promise<boolean> {
  return await execute(tx, 'update gateway_certificate set status = $3, status_at = now(), updated_at = now() where id = $1 and status = $2', certificateId, from, to) === 1;
}

/** Nobody is served by it any more: its keys are gone. */
export async function retireCertificate(tx: Tx, certificateId: string): Promise<void> {
  await execute(tx, `update gateway_certificate set status = 'retired', status_at = now(), key_sealed = null, next_key_sealed = null, next_chain = null, order_url = null, next_attempt_at = null, updated_at = now()
    where id = $1 and status <> 'retired'`, certificateId);
}

/** Those whose end has passed while they served. */
export async function expireCertificates(db: Db): Promise<number> {
  return execute(db, `update gateway_certificate set status = 'expired', status_at = now(), next_attempt_at = coalesce(next_attempt_at, now()), updated_at = now() where status in ('valid', 'renewing') and not_after <= now()`);
}

/** What an order is due for: the time to renew has come, or that of another attempt. In the order of ids, nothing somebody works on. */
export function listDueCertificates(db: Db, after: string, limit: number): Promise<CertificateRow[]> {
  return rows<CertificateRow>(db, `select ${certificateColumns} from gateway_certificate c where c.id > $1
    and ((c.status = 'valid' and c.renew_at <= now() and coalesce(c.next_attempt_at, now()) <= now()) or (c.status in ('failed', 'expired') and coalesce(c.next_attempt_at, now()) <= now()))
    and not exists (select from operation o where o.resource_id = c.id and o.state in ('pending', 'running')) order by c.id limit $2::int`, after, limit);
}

/** Orders that nobody works on although they have begun ten minutes ago. */
export function listAbandonedCertificates(db: Db, limit: number): Promise<CertificateRow[]> {
  return rows<CertificateRow>(db, `select ${certificateColumns} from gateway_certificate c where c.status in ('requested', 'issuing', 'renewing') and c.status_at < now() - interval '10 minutes'
    and not exists (select from operation o where o.resource_id = c.id and o.state in ('pending', 'running')) order by c.id limit $1::int`, limit);
}

/** Zones that have proxied names or certificates, in the order of ids. */
export async function listCertificateZones(db: Db, after: string, limit: number): Promise<string[]> {
  const found = await rows<{ id: string }>(db, `select z.id from dns_zone z where z.id > $1 and z.purged_at is null
    and ((z.proxied_count > 0 and z.deleted_at is null) or exists (select from gateway_certificate c where c.zone_id = z.id and c.status <> 'retired')) order by z.id limit $2::int`, after, limit);
  return found.map(({ id }) => id);
}
