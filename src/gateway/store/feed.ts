import { prepared, rows, execute, type Database, type Db } from '../../db/client';

/** What gateways read of a zone, in one statement: its policy as it is stored, and the certificates of its names. */
export type StoredZone = { policyVersion: number; document: unknown; certificates: StoredZoneCertificate[] };
type StoredZoneCertificate = { id: string; hostnames: string[]; chainPem: string; sealedKey: string; notAfterMs: number };

/** Version 0 and no document: the policy was never written. */
export async function readStoredZone(database: Database, zoneId: string): Promise<StoredZone> {
  const [row] = await prepared<StoredZone>(database, `
    select coalesce(p.version, 0) as "policyVersion", p.document, (
      select coalesce(json_agg(json_build_object('id', c.id, 'hostnames', c.hostnames, 'chainPem', c.chain, 'sealedKey', c.key_sealed, 'notAfterMs', extract(epoch from c.not_after) * 1000)), '[]')
      from gateway_certificate c where c.zone_id = $1 and c.status <> 'retired' and c.chain is not null and c.key_sealed is not null and c.not_after is not null) as certificates
    from (select 1) one left join gateway_policy p on p.zone_id = $1`, [zoneId]);
  return row ?? { policyVersion: 0, document: null, certificates: [] };
}

export type PolicyVersion = { zoneId: string; version: number };

/** Versions of policies: all, or those written within so many seconds. */
export function listPolicyVersions(db: Db, withinSeconds: number | null): Promise<PolicyVersion[]> {
  return rows<PolicyVersion>(db, `select zone_id as "zoneId", version from gateway_policy where $1::int is null or updated_at > now() - make_interval(secs => $1::int)`, withinSeconds);
}

/** Zones of which a certificate has changed within so many seconds, each with the time of the last change. */
export function listChangedCertificates(db: Db, withinSeconds: number): Promise<{ zoneId: string; at: Date }[]> {
  return rows<{ zoneId: string; at: Date }>(db, `select zone_id as "zoneId", max(updated_at) as at from gateway_certificate where updated_at > now() - make_interval(secs => $1::int) group by zone_id`, withinSeconds);
}

export type InstanceState = 'starting' | 'ready' | 'draining';

/** The instance has a row with this state and a heartbeat of now. True: the row is new, so that nothing is acknowledged yet. */
export async function beatInstance(db: Db, id: string, state: InstanceState): Promise<boolean> {
  const [row] = await rows<{ made: boolean }>(db, `insert into gateway_instance (id, state) values ($1, $2)
    on conflict (id) do update set state = excluded.state, heartbeat_at = now() returning (xmax = 0) as made`, id, state);
  return row?.made ?? false;
}

/** Nobody waits for its acknowledgements any more. */
export async function removeInstance(db: Db, id: string): Promise<void> {
  await execute(db, 'delete from gateway_instance where id = $1', id);
}

/** The instance judges by these versions from now on. A version never falls. */
export async function acknowledgePolicies(database: Database, instanceId: string, acks: readonly PolicyVersion[]): Promise<void> {
  await prepared(database, `insert into gateway_ack (instance_id, zone_id, policy_version) select $1, zone_id, version from unnest($2::text[], $3::int[]) as a (zone_id, version)
    on conflict (instance_id, zone_id) do update set policy_version = excluded.policy_version, at = now() where excluded.policy_version > gateway_ack.policy_version`,
  [instanceId, acks.map(({ zoneId }) => zoneId), acks.map(({ version }) => version)]);
}

/** What an http-01 token that was placed within the hour is answered with; null: not one of ours. */
export async function findAcmeToken(database: Database, token: string): Promise<string | null> {
  const [row] = await prepared<{ answer: string }>(database, `select key_authorization as answer from gateway_acme_token where token = $1 and method = 'http01' and created_at > now() - interval '1 hour'`, [token]);
  return row?.answer ?? null;
}

export type OriginFinding = { zoneId: string; hostname: string; address: string; healthy: boolean; lastError: string | null; /** RFC 3339. */ checkedAt: string };

/** How the instance last found these origins. */
export async function writeOriginFindings(database: Database, instanceId: string, findings: readonly OriginFinding[]): Promise<void> {
  await prepared(database, `insert into gateway_origin (instance_id, zone_id, hostname, address, healthy, last_error, checked_at)
    select $1, f."zoneId", f.hostname, f.address, f.healthy, f."lastError", f."checkedAt" from json_to_recordset($2::json) as f ("zoneId" text, hostname text, address text, healthy boolean, "lastError" text, "checkedAt" timestamptz)
    on conflict (instance_id, zone_id, hostname, address) do update set healthy = excluded.healthy, last_error = excluded.last_error, checked_at = excluded.checked_at`, [instanceId, JSON.stringify(findings)]);
}
