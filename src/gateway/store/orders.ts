import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { CertificateStatus } from '../state';

export type OrderMaterial = { nextKeySealed: string | null; nextChain: string | null; orderUrl: string | null };

export async function readOrderMaterial(db: Db, certificateId: string): Promise<OrderMaterial | null> {
  const [row] = await rows<OrderMaterial>(db, 'select next_key_sealed as "nextKeySealed", next_chain as "nextChain", order_url as "orderUrl" from gateway_certificate where id = $1', certificateId);
  return row ?? null;
}

/** The key of the order under way: the first that is kept wins, and is answered. */
export async function keepOrderKey(db: Db, certificateId: string, generation: number, sealed: string): Promise<string | null> {
  const [row] = await rows<{ sealed: string }>(db, `update gateway_certificate set next_key_sealed = coalesce(next_key_sealed, $3), updated_at = now()
    where id = $1 and generation = $2::int and status <> 'retired' returning next_key_sealed as sealed`, certificateId, generation, sealed);
  return row?.sealed ?? null;
}

export async function keepOrderUrl(db: Db, certificateId: string, generation: number, url: string): Promise<void> {
  await execute(db, 'update gateway_certificate set order_url = $3, updated_at = now() where id = $1 and generation = $2::int', certificateId, generation, url);
}

export async function keepOrderChain(db: Db, certificateId: string, generation: number, chain: string): Promise<void> {
  await execute(db, `update gateway_certificate set next_chain = $3, updated_at = now() where id = $1 and generation = $2::int and next_key_sealed is not null and status <> 'retired'`, certificateId, generation, chain);
}

export type Served = { serialNumber: string; notBefore: Date; notAfter: Date; renewAt: Date };

/** What the order has brought serves from now. */
export async function adoptOrder(tx: Tx, certificateId: string, { serialNumber, notBefore, notAfter, renewAt }: Served): Promise<void> {
  await execute(tx, `update gateway_certificate set status = 'valid', status_at = now(), chain = next_chain, key_sealed = next_key_sealed, next_chain = null, next_key_sealed = null, order_url = null,
    serial_number = $2, not_before = $3, not_after = $4, renew_at = $5, attempts = 0, next_attempt_at = null, last_error_code = null, last_error_message = null, updated_at = now()
    where id = $1 and next_chain is not null`, certificateId, serialNumber, notBefore, notAfter, renewAt);
}

/** The order is over without a certificate; what served serves on. */
export async function recordOrderFailure(tx: Tx, certificateId: string, failed: { to: CertificateStatus; code: string; message: string; nextAttemptAt: Date }): Promise<void> {
  await execute(tx, `update gateway_certificate set status = $2, status_at = now(), attempts = attempts + 1, next_attempt_at = $3, last_error_code = $4, last_error_message = $5,
    next_chain = null, next_key_sealed = null, order_url = null, updated_at = now() where id = $1`, certificateId, failed.to, failed.nextAttemptAt, failed.code, failed.message);
}

/** The latest times an order was placed for one of the names, newest first. */
export async function listOrders(db: Db, hostname: string, withinSeconds: number): Promise<Date[]> {
  const found = await rows<{ at: Date }>(db, `select ordered_at as at from gateway_certificate_order where hostname = $1 and ordered_at > now() - $2::int * interval '1 second' order by ordered_at desc`, hostname, withinSeconds);
  return found.map(({ at }) => at);
}

export async function recordOrder(tx: Tx, hostnames: readonly string[]): Promise<void> {
  await execute(tx, 'insert into gateway_certificate_order (hostname) select unnest($1::text[])', hostnames);
}

export type Proof = { token: string; hostname: string; keyAuthorization: string; certificateId: string; zoneId: string; method: 'dns01' | 'http01' };

/** The gateway answers an http01 proof from now on, for an hour. */
export async function keepProof(db: Db, proof: Proof): Promise<void> {
  await execute(db, `insert into gateway_acme_token (token, hostname, key_authorization, certificate_id, zone_id, method) values ($1, $2, $3, $4, $5, $6)
    on conflict (token) do update set key_authorization = excluded.key_authorization, created_at = now()`, proof.token, proof.hostname, proof.keyAuthorization, proof.certificateId, proof.zoneId, proof.method);
}

export function listProofs(db: Db, certificateId: string): Promise<Proof[]> {
  return rows<Proof>(db, `select token, hostname, key_authorization as "keyAuthorization", certificate_id as "certificateId", zone_id as "zoneId", method
    from gateway_acme_token where certificate_id = $1 order by token`, certificateId);
}

export async function dropProof(db: Db, token: string): Promise<void> {
  await execute(db, 'delete from gateway_acme_token where token = $1', token);
}
