import type { Db } from '../../db/client';
import type { MailDeps } from '../deps';
import type { DomainView, ServiceView } from '../schemas';
import { hostingZones } from '../publication';
import { factsOf } from '../services';
import { readDomainRecords } from '../store/domain-records';
import type { DomainRow } from '../store/domains';
import type { ServiceRow } from '../store/services';
import { viewDomain, viewService } from '../view';

/** Services as they are answered, in the order of the rows. */
export async function showServices({ config, clock }: Pick<MailDeps, 'config' | 'clock'>, db: Db, rows: readonly ServiceRow[]): Promise<ServiceView[]> {
  const facts = await factsOf(db, rows, clock.now());
  return rows.flatMap((row, i) => {
    const own = facts[i];
    return own ? [viewService(row, own, config.MAIL_TRANSPORT)] : [];
  });
}

export async function showService(deps: Pick<MailDeps, 'config' | 'clock'>, db: Db, row: ServiceRow): Promise<ServiceView> {
  const [shown] = await showServices(deps, db, [row]);
  if (!shown) throw new Error('unreachable: one row is shown as one service');
  return shown;
}

/** Domains with their records. Where the hosted zone is deleted there is none, and nothing is published. */
export async function showDomains(db: Db, rows: readonly DomainRow[]): Promise<DomainView[]> {
  const records = await readDomainRecords(db, rows.map(({ id }) => id));
  const zones = await hostingZones(db, rows);
  return rows.map((row) => {
    const hosted = row.hostedZoneId !== null && zones.has(row.hostedZoneId);
    return hosted ? viewDomain(row, records) : viewDomain({ ...row, hostedZoneId: null }, records.map((record) => ({ ...record, published: false })));
  });
}

export async function showDomain(db: Db, row: DomainRow): Promise<DomainView> {
  const [shown] = await showDomains(db, [row]);
  if (!shown) throw new Error('unreachable: one row is shown as one domain');
  return shown;
}
