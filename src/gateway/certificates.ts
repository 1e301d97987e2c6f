import { systemCause, type Cause } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import { newId } from '../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Db } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { findZone, loadProxyRoutes, loadZone, requireWritable, requireZone, type ZoneRow } from '../dns/service';
import { appendAudit } from '../identity/service';
import { openOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import type { GatewayDeps } from './deps';
import { wantedCertificates, type WantedCertificate } from './rules/certificate-names';
import {
  beginGeneration, certificatesOfZone, expireCertificates, findCertificate, insertCertificate, listCertificates, listCertificateZones, listDueCertificates, lockCertificate, retireCertificate,
  type CertificateRow,
} from './store/certificates';

export type CertificateDeps = Pick<GatewayDeps, 'db' | 'certificateIssuerName'>;
const renewRate = { name: 'gateway-certificate-renewals', limit: 1, periodSeconds: 600 };

/** Certificates of a zone, newest first. Errors: `not_found`, `invalid_cursor`. */
export async function pageCertificates({ db, cursors }: Pick<GatewayDeps, 'db' | 'cursors'>, projectId: string, zoneId: string, query: PageRequest): Promise<Page<CertificateRow>> {
  const zone = requireZone(await findZone(db.prisma, projectId, zoneId));
  return readPage(cursors, { list: 'gateway.certificates', zoneId: zone.id }, query, {
    limitDefault: unpagedMax, keyOf: ({ createdAt, id }) => [createdAt.toISOString(), id], fetch: (after, limit) => listCertificates(db.prisma, zone.id, { after, limit }),
  });
}

/** A certificate is ordered anew. Errors: `not_found`, `service_suspended`, `invalid_state` while it is ordered or its zone orders none, `rate_limited`. */
export async function renewCertificate(
  tx: Tx, deps: CertificateDeps & Pick<GatewayDeps, 'limiter'>, request: { projectId: string; zoneId: string; certificateId: string; cause: Cause },
): Promise<{ certificate: CertificateRow; operation: OperationRow }> {
  const zone = requireWritable(await findZone(tx, request.projectId, request.zoneId));
  const known = await findCertificate(tx, zone.id, request.certificateId);
  const locked = known && await lockCertificate(tx, known.id);
  if (!locked || locked.status === 'retired') throw notFound('Certificate');
  if (locked.status !== 'valid' && locked.status !== 'failed' && locked.status !== 'expired') throw new AppError('invalid_state', 'This certificate is being ordered already.', { status: locked.status });
  if (!mayOrder(zone)) throw new AppError('invalid_state', 'No certificates are ordered for this zone: its domain does not lead here.', { status: zone.status });
  await deps.limiter.take(renewRate, locked.id);
  const { certificate, operation } = await reorder(tx, { ...deps, zone }, locked, request.cause);
  appendAudit(tx, {
    orgId: zone.orgId, projectId: zone.projectId, cause: request.cause, outcome: 'done', target: { type: 'gatewayCertificate', id: locked.id },
    changes: [{ field: 'generation', from: locked.generation, to: certificate.generation }],
  });
  return { certificate, operation };
}

/**
 * Every served name of an active or degraded zone has a certificate or one that is asked for, and those that serve no name
 * are retired. Nothing happens where all is so already. Errors: none for a zone that is gone.
 */
export async function ensureZoneCertificates(deps: CertificateDeps, zoneId: string): Promise<{ opened: number; retired: number }> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  if (!zone) return { opened: 0, retired: 0 };
  const wanted = await wantedOf(deps.db.prisma, zone);
  const known = await certificatesOfZone(deps.db.prisma, zone.id);
  const unwanted = known.filter(({ primaryHostname }) => !wanted.some((one) => one.primaryHostname === primaryHostname));
  for (const { id } of unwanted) await inTransaction(deps.db, (tx) => retireCertificate(tx, id));
  const missing = mayOrder(zone) ? wanted.filter(({ primaryHostname }) => !known.some((one) => one.primaryHostname === primaryHostname)) : [];
  let opened = 0;
  for (const one of missing) if (await request(deps, zone, one)) opened++;
  return { opened, retired: unwanted.length };
}

/** Orders that are due have an operation; what has ended is expired; every zone of a page has what it needs. `beat` is called between zones. */
export async function sweepCertificates(deps: CertificateDeps, beat: () => void): Promise<{ expired: number; opened: number; retired: number }> {
  const swept = { expired: await expireCertificates(deps.db.prisma), opened: 0, retired: 0 };
  for (let after = ''; ;) {
    const zoneIds = await listCertificateZones(deps.db.prisma, after, 200);
    for (const zoneId of zoneIds) {
      beat();
      const { opened, retired } = await ensureZoneCertificates(deps, zoneId);
      Object.assign(swept, { opened: swept.opened + opened, retired: swept.retired + retired });
    }
    const last = zoneIds.at(-1);
    if (last === undefined) break;
    after = last;
  }
  for (let after = ''; ;) {
    const due = await listDueCertificates(deps.db.prisma, after, 200);
    for (const certificate of due) {
      beat();
      if (await orderDue(deps, certificate)) swept.opened++;
    }
    const last = due.at(-1);
    if (!last) return swept;
    after = last.id;
  }
}

/** Whether the certificate's name is still one the gateway serves, and whether its zone may order. */
export async function readClaim(db: Db, { zoneId, primaryHostname }: CertificateRow): Promise<{ zone: ZoneRow | null; served: boolean; mayOrder: boolean }> {
  const zone = await loadZone(db, zoneId);
  if (!zone) return { zone, served: false, mayOrder: false };
  return { zone, served: (await wantedOf(db, zone)).some((one) => one.primaryHostname === primaryHostname), mayOrder: mayOrder(zone) };
}

/** The operation whose workflow brings a certificate to `valid`. */
export function openCertificateOperation(tx: Tx, certificate: CertificateRow, cause: Cause): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: certificate.orgId, projectId: certificate.projectId, kind: 'gateway.ensure_certificate', resourceId: certificate.id, requestId: cause.requestId,
    summary: `Certificate for ${certificate.primaryHostname}`,
    start: { workflow: 'ensureCertificate', workflowId: workflowIds.ensureCertificate(certificate.id), queue: 'gateway', payload: { certificateId: certificate.id, generation: certificate.generation } },
  });
}

/** Proven zones alone: a claim that waits or was lost orders nothing. */
function mayOrder(zone: Pick<ZoneRow, 'status' | 'deletedAt'>): boolean {
  return !zone.deletedAt && (zone.status === 'active' || zone.status === 'degraded');
}

async function wantedOf(db: Db, zone: ZoneRow): Promise<WantedCertificate[]> {
  return zone.deletedAt ? [] : wantedCertificates(zone, (await loadProxyRoutes(db, zone.id)).map(({ hostname }) => hostname));
}

function methodOf({ certificateIssuerName }: CertificateDeps, zone: ZoneRow): 'dns01' | 'http01' | null {
  if (certificateIssuerName === 'self_signed') return null;
  return zone.mode === 'external' ? 'http01' : 'dns01';
}

function request(deps: CertificateDeps, zone: ZoneRow, wanted: WantedCertificate): Promise<boolean> {
  return inTransaction(deps.db, async (tx) => {
    const row = await insertCertificate(tx, { id: newId('crt'), zoneId: zone.id, orgId: zone.orgId, projectId: zone.projectId, ...wanted, issuer: deps.certificateIssuerName, method: methodOf(deps, zone) });
    if (row) await openCertificateOperation(tx, row, systemCause('requestCertificate'));
    return row !== null;
  });
}

function orderDue(deps: CertificateDeps, { id, zoneId }: CertificateRow): Promise<boolean> {
  return inTransaction(deps.db, async (tx) => {
    const [zone, locked] = [await loadZone(tx, zoneId), await lockCertificate(tx, id)];
    if (!zone || !locked || !mayOrder(zone) || (locked.status !== 'valid' && locked.status !== 'failed' && locked.status !== 'expired')) return false;
    await reorder(tx, { ...deps, zone }, locked, systemCause('renewCertificate'));
    return true;
  });
}

async function reorder(tx: Tx, deps: CertificateDeps & { zone: ZoneRow }, { id }: CertificateRow, cause: Cause): Promise<{ certificate: CertificateRow; operation: OperationRow }> {
  const certificate = await beginGeneration(tx, id, { issuer: deps.certificateIssuerName, method: methodOf(deps, deps.zone) });
  if (!certificate) throw notFound('Certificate');
  return { certificate, operation: await openCertificateOperation(tx, certificate, cause) };
}
