import { AppError } from '../core/errors';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import { ensureManagedRecords, findHostedZone, knownZoneIds } from '../dns/service';
import type { MailDeps } from './deps';
import { recordsOf, recordTtl, type DomainRecord } from './rules/domain-records';
import { readKeys, writeDomainRecords, writePublished } from './store/domain-records';
import { setHosted, type DomainRow } from './store/domains';

type PlaceDeps = Pick<MailDeps, 'dnsPlatform' | 'config'>;

/**
 * The domain lists the records its keys need, and where the project hosts the zone they stand in it, but for those that
 * something a user wrote stands in the way of. False: no zone of the project holds the domain.
 */
export async function placeRecords(tx: Tx, deps: PlaceDeps, domain: DomainRow): Promise<boolean> {
  const records = recordsOf(domain, await readKeys(tx, domain.id), deps.config.MAIL_BOUNCE_DOMAIN);
  await writeDomainRecords(tx, domain.id, records);
  const zone = await findHostedZone(tx, domain.projectId, domain.domain);
  if (zone?.mode !== 'full_hosting') {
    await setHosted(tx, domain.id, { zoneId: null, version: null });
    await writePublished(tx, domain.id, []);
    return false;
  }
  const placed = await publish(tx, deps, { domain, zoneId: zone.zoneId, records });
  await setHosted(tx, domain.id, { zoneId: zone.zoneId, version: placed.version });
  await writePublished(tx, domain.id, placed.names);
  return true;
}

/** A zone that is full or cannot take the records as they are takes none: the customer sees it by `published`. */
async function publish(
  tx: Tx, deps: PlaceDeps, { domain, zoneId, records }: { domain: DomainRow; zoneId: string; records: readonly DomainRecord[] },
): Promise<{ version: number | null; names: string[] }> {
  const wanted = records.map(({ type, name, value }) => ({ type, name, value, ttl: recordTtl }));
  try {
    const { version, records: written } = await ensureManagedRecords(tx, deps, { zoneId, owner: 'mail', ownerId: domain.id, records: wanted });
    return { version, names: records.filter((_, i) => written[i]?.published).map(({ name }) => name) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { version: null, names: [] };
  }
}

/** Whether the hosted zone is published as far as the domain's records need; true where none is hosted. */
export async function isPublished(db: Db, domain: Pick<DomainRow, 'projectId' | 'domain' | 'awaitVersion'>): Promise<boolean> {
  if (domain.awaitVersion === null) return true;
  const zone = await findHostedZone(db, domain.projectId, domain.domain);
  return zone === null || zone.publishedVersion >= domain.awaitVersion;
}

/** Of the zones these domains were placed in, those that are not deleted. */
export function hostingZones(db: Db, domains: readonly Pick<DomainRow, 'hostedZoneId'>[]): Promise<ReadonlySet<string>> {
  return knownZoneIds(db, domains.flatMap(({ hostedZoneId }) => hostedZoneId ?? []));
}
