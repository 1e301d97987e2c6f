import type { Db } from '../../db/client';
import type { MailDeps } from '../deps';
import type { DomainView, ServiceView } from '../schemas';
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

/** Domains with their records. */
export async function showDomains(db: Db, rows: readonly DomainRow[]): Promise<DomainView[]> {
  const records = await readDomainRecords(db, rows.map(({ id }) => id));
  return rows.map((row) => viewDomain(row, records));
}

export async function showDomain(db: Db, row: DomainRow): Promise<DomainView> {
  return viewDomain(row, await readDomainRecords(db, [row.id]));
}
