import { generateKeyPair, X509Certificate, createPrivateKey } from 'node:crypto';
import { promisify } from 'node:util';
import type { Clock } from '../core/clock';
import { AppError } from '../core/errors';
import { Superseded, TryLater } from '../core/job-errors';
import type { Secrets } from '../core/secrets';
import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { ensureChallenge, removeChallenge, type DnsDeps } from '../dns/service';
import { settleOperation } from '../operations/store';
import { readClaim } from './certificates';
import type { CertificateIssuer, ChallengeResponder } from './ports';
import { caaForbids } from './rules/caa';
import { backoffMs, certificateTransitions, renewalAt, underway, type CertificateStatus } from './state';
import { lockCertificate, moveCertificate, retireCertificate, type CertificateRow } from './store/certificates';
import { adoptOrder, dropProof, keepOrderChain, keepOrderKey, keepOrderUrl, keepProof, listOrders, listProofs, readOrderMaterial, recordOrder, recordOrderFailure } from './store/orders';

/** What the workflow is about: an older generation gives way. */
export type CertificateRun = { certificateId: string; generation: number; operationId: string };
export type OrderDeps = { db: Database; clock: Clock; secrets: Secrets; certificateIssuer: CertificateIssuer } & Pick<DnsDeps, 'dnsPlatform' | 'dnsResolver'>;
export type OrderFailure = { code: string; message: string; cancelled: boolean };

const ordersPerHour = 3;
const hourSeconds = 3_600;
const newKey = promisify(generateKeyPair);

/** Whether the name is still served. Errors: `certificate_not_served` for a name whose zone orders nothing now; Superseded. */
export async function loadOrder(deps: Pick<OrderDeps, 'db'>, run: CertificateRun): Promise<{ served: boolean }> {
  const row = await inTransaction(deps.db, (tx) => owned(tx, run));
  const { served, mayOrder } = await readClaim(deps.db.prisma, row);
  if (served && !mayOrder) throw new AppError('certificate_not_served', 'The domain of this name does not lead here at the moment.');
  return { served };
}

/** The order has begun: requested, failed and expired become issuing, valid becomes renewing. Safe twice. */
export async function beginOrder(deps: Pick<OrderDeps, 'db'>, run: CertificateRun): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const row = await owned(tx, run);
    const to = underway(row.status);
    if (to !== null && to !== row.status) await move(tx, row, to);
  });
}

/** Errors: `certificate_caa_forbids` when the domain allows other authorities only (RFC 8659); TryLater when DNS does not say. */
export async function checkCaa(deps: Pick<OrderDeps, 'db' | 'dnsResolver' | 'certificateIssuer'>, run: CertificateRun): Promise<void> {
  const row = await inTransaction(deps.db, (tx) => owned(tx, run));
  const identities = await deps.certificateIssuer.caaIdentities();
  for (const hostname of identities.length > 0 ? row.hostnames : []) {
    const wildcard = hostname.startsWith('*.');
    const records = await relevantCaa(deps, wildcard ? hostname.slice(2) : hostname);
    if (caaForbids(records, identities, wildcard)) throw new AppError('certificate_caa_forbids', `CAA records of ${hostname} do not allow this certificate authority.`);
  }
}

/** A chain for the present generation is kept beside what serves, with its key. A second run goes on with the key and the order of the first. Errors: `certificate_rejected`; others may be tried again. */
export async function obtain(deps: OrderDeps, run: CertificateRun, signal: AbortSignal): Promise<void> {
  const { db, secrets, certificateIssuer } = deps;
  const row = await inTransaction(db, (tx) => owned(tx, run));
  const material = await readOrderMaterial(db.prisma, row.id);
  if (!material || material.nextChain !== null) return;
  const sealed = await keepOrderKey(db.prisma, row.id, run.generation, material.nextKeySealed ?? secrets.seal(await freshKey(), aadOf(row.id)));
  if (sealed === null) throw new Superseded();
  const keyPem = secrets.open(sealed, aadOf(row.id));
  const { chainPem } = await certificateIssuer.issue({
    id: row.id, hostnames: row.hostnames, keyPem, resumeUrl: material.orderUrl, mayOrder: () => requireOrderRoom(deps, row),
    saveResumeUrl: (url) => inTransaction(db, (tx) => keepOrder(tx, row, run.generation, url)), respond: responderOf(deps, row),
  }, signal);
  requireFitting(chainPem, keyPem, row.hostnames);
  await keepOrderChain(db.prisma, row.id, run.generation, chainPem);
}

/** What was obtained serves from this commit; the operation has succeeded. Safe twice. */
export async function adopt(deps: Pick<OrderDeps, 'db'>, run: CertificateRun): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const row = await owned(tx, run);
    const material = await readOrderMaterial(tx, row.id);
    if (material?.nextChain) await adoptOrder(tx, row.id, factsOf(material.nextChain));
    else if (row.status !== 'valid') throw new TryLater('The certificate is not there yet.');
    await settleOperation(tx, run.operationId, 'succeeded');
  });
}

/** No proof of this certificate's orders is answered any more. Safe at any time. */
export async function removeProofs(deps: Pick<OrderDeps, 'db' | 'dnsPlatform'>, { certificateId }: Pick<CertificateRun, 'certificateId'>): Promise<void> {
  for (const proof of await listProofs(deps.db.prisma, certificateId)) {
    if (proof.method === 'dns01') await removeChallenge(deps, { zoneId: proof.zoneId, fqdn: challengeName(proof.hostname), value: proof.keyAuthorization });
    await dropProof(deps.db.prisma, proof.token);
  }
}

/** The order is over without a certificate; another is due after the back-off. What served serves on. A cancelled one may be repeated at once. Safe twice, and after it was adopted. */
export async function failOrder(deps: Pick<OrderDeps, 'db' | 'clock'>, run: CertificateRun, { code, message, cancelled }: OrderFailure): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const row = await owned(tx, run);
    const isNew = await settleOperation(tx, run.operationId, cancelled ? 'cancelled' : 'failed', cancelled ? undefined : { code, message });
    if (!isNew || row.status === 'retired') return;
    const to = row.status === 'renewing' || row.status === 'valid' ? 'valid' : row.status === 'expired' ? 'expired' : 'failed';
    const pauseMs = cancelled ? 0 : backoffMs(row.attempts + 1);
    await recordOrderFailure(tx, row.id, { to, code, message, nextAttemptAt: new Date(deps.clock.now().getTime() + pauseMs) });
  });
}

/** Nobody is served by it: its keys are gone. Safe twice. */
export async function retire(deps: Pick<OrderDeps, 'db'>, run: CertificateRun): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const row = await owned(tx, run);
    await retireCertificate(tx, row.id);
    await settleOperation(tx, run.operationId, 'cancelled');
  });
}

async function owned(tx: Tx, { certificateId, generation }: CertificateRun): Promise<CertificateRow> {
  const row = await lockCertificate(tx, certificateId);
  if (!row || row.generation !== generation) throw new Superseded();
  return row;
}

async function move(tx: Tx, { id, status }: CertificateRow, to: CertificateStatus): Promise<void> {
  const known: readonly CertificateStatus[] = certificateTransitions[status];
  if (!known.includes(to)) throw new AppError('invalid_state', `A certificate that is ${status} does not become ${to}.`);
  await moveCertificate(tx, id, status, to);
}

/** At most three orders per name and hour: an authority locks out who asks more. Errors: TryLater. */
async function requireOrderRoom({ db, clock }: Pick<OrderDeps, 'db' | 'clock'>, { hostnames }: CertificateRow): Promise<void> {
  for (const hostname of hostnames) {
    const third = (await listOrders(db.prisma, hostname, hourSeconds))[ordersPerHour - 1];
    if (third) throw new TryLater('Three orders for a name within an hour are enough.', { afterMs: Math.max(1_000, third.getTime() + hourSeconds * 1_000 - clock.now().getTime()), expected: true });
  }
}

/** Every order counts, also one that a newer intent has overtaken meanwhile. */
async function keepOrder(tx: Tx, { id, hostnames }: CertificateRow, generation: number, url: string): Promise<void> {
  await keepOrderUrl(tx, id, generation, url);
  await recordOrder(tx, hostnames);
}

/** dns01: `keyAuthorization` is what the TXT record says (RFC 8555 §8.4), and put returns when every live server answers it. */
function responderOf(deps: Pick<OrderDeps, 'db' | 'dnsPlatform'>, { id, zoneId, method }: CertificateRow): ChallengeResponder {
  const used = method ?? 'http01';
  return {
    method: used,
    async put(hostname, token, keyAuthorization) {
      await keepProof(deps.db.prisma, { token, hostname, keyAuthorization, certificateId: id, zoneId, method: used });
      if (used === 'dns01') await ensureChallenge(deps, { zoneId, fqdn: challengeName(hostname), value: keyAuthorization }).catch(placingFailed);
    },
    async remove(hostname, token) {
      const proof = (await listProofs(deps.db.prisma, id)).find((known) => known.token === token);
      if (proof && used === 'dns01') await removeChallenge(deps, { zoneId, fqdn: challengeName(hostname), value: proof.keyAuthorization });
      await dropProof(deps.db.prisma, token);
    },
  };
}

/** Servers that are slow may be waited for; what stands in the way in the zone is its owner's to change. */
function placingFailed(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'deadline_exceeded') throw new TryLater('Not every name server answers the proof yet.', { expected: true, cause: error });
  if (error.code === 'invalid_state' || error.code === 'not_found') throw new AppError('certificate_not_served', 'Our name servers do not answer for this name.', {}, { cause: error });
  throw new AppError('certificate_rejected', `The proof cannot be placed in the zone: ${error.message}`, {}, { cause: error });
}

/** The closest CAA set at or above the name (RFC 8659 §3). */
async function relevantCaa({ dnsResolver }: Pick<OrderDeps, 'dnsResolver'>, hostname: string): Promise<string[]> {
  for (let name = hostname; name.includes('.'); name = name.slice(name.indexOf('.') + 1)) {
    const { outcome, conclusive, records } = await dnsResolver.resolve(name, 'CAA', { freshness: 'live', budgetMs: 2_000 });
    const found = records.filter(({ type }) => type === 'CAA').map(({ value }) => value);
    if (found.length > 0) return found;
    if (!conclusive || (outcome !== 'nodata' && outcome !== 'nxdomain' && outcome !== 'answer')) throw new TryLater('DNS does not say which authorities the domain allows.', { expected: true });
  }
  return [];
}

async function freshKey(): Promise<string> {
  const { privateKey } = await newKey('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Errors: `certificate_rejected` for a chain of another key or without one of the names. */
function requireFitting(chainPem: string, keyPem: string, hostnames: readonly string[]): void {
  const leaf = new X509Certificate(chainPem);
  const named = leaf.subjectAltName?.split(', ') ?? [];
  if (leaf.checkPrivateKey(createPrivateKey(keyPem)) && hostnames.every((name) => named.includes(`DNS:${name}`))) return;
  throw new AppError('certificate_rejected', 'The authority gave a certificate for another key or other names.');
}

function factsOf(chainPem: string): { serialNumber: string; notBefore: Date; notAfter: Date; renewAt: Date } {
  const { serialNumber, validFrom, validTo } = new X509Certificate(chainPem);
  const [notBefore, notAfter] = [new Date(validFrom), new Date(validTo)];
  return { serialNumber: serialNumber.toLowerCase(), notBefore, notAfter, renewAt: renewalAt(notBefore, notAfter) };
}

const aadOf = (certificateId: string) => `certificate:${certificateId}`;
const challengeName = (hostname: string) => `_acme-challenge.${hostname}`;
