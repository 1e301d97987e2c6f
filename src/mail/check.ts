import type { Delegation } from '../dns/ports';
import type { MailDeps } from './deps';
import type { Verdict } from './rules/domain-checks';
import { dmarcPolicyOf, shownFound, statusOfFound } from './rules/domain-records';
import type { FoundRecord, RecordRow } from './store/domain-records';
import type { DomainRow } from './store/domains';

export type CheckDeps = Pick<MailDeps, 'dnsResolver' | 'dnsPlatform' | 'clock'>;

/** What DNS says of a domain's records; nothing is written yet. */
export type Check = {
  verdict: Verdict;
  /** What is told of records that DNS spoke about; the others keep what was found before. */
  found: FoundRecord[];
  /** The record of a key that waits is there. */
  nextKeySeen: boolean;
  /** Known false: DNS did not tell. */
  dmarc: { known: boolean; policy: string | null };
};

type Looked = { record: RecordRow; state: 'ok' | 'miss' | 'unknown'; found: string[]; zone: string | null; server: string | null };

const otherServersMax = 4;
const confirmBudgetMs = 3_000;

/**
 * Asks DNS itself for every record, all at once. `confirm`: a required record that is not there must be missing at the zone's other
 * servers too, as far as they answer with authority, else the check says nothing (contract mail.md §2.2). Never throws for what DNS says.
 */
export async function checkDomain(
  deps: CheckDeps, domain: Pick<DomainRow, 'status' | 'verificationDeadline'>, { records, budgetMs, confirm }: { records: readonly RecordRow[]; budgetMs: number; confirm: boolean },
): Promise<Check> {
  const looked = await Promise.all(records.map((record) => look(deps, record, budgetMs)));
  const current = looked.filter(({ record: { purpose } }) => purpose === 'dkim').filter(({ record }) => record.required);
  const [first, waiting] = current;
  const nextKeySeen = waiting?.state === 'ok';
  const dkim = nextKeySeen ? waiting : first;
  const ownership = looked.find(({ record }) => record.purpose === 'ownership');
  const required = [ownership, dkim].filter((one) => one !== undefined);
  const lowers = confirm && (domain.status !== 'pending' || deps.clock.now() >= domain.verificationDeadline);
  const verdict = required.length < 2 ? 'unknown' : await verdictOf(deps, required, lowers);
  const dmarc = looked.find(({ record }) => record.purpose === 'dmarc');
  return {
    verdict, nextKeySeen: nextKeySeen && verdict === 'ok',
    found: looked.flatMap((one) => foundOf(one, lowers && verdict === 'unknown' && one.state === 'miss' && required.includes(one))),
    dmarc: { known: dmarc !== undefined && dmarc.state !== 'unknown', policy: dmarc ? dmarcPolicyOf(dmarc.found) : null },
  };
}

async function look({ dnsResolver }: CheckDeps, record: RecordRow, budgetMs: number): Promise<Looked> {
  const answer = await dnsResolver.resolve(record.name, record.type, { freshness: 'live', budgetMs });
  const found = answer.records.filter(({ type, name }) => type === record.type && (type !== 'CNAME' || name === record.name)).map(({ value }) => value);
  const state = !answer.conclusive ? 'unknown' : statusOfFound(record, found) === 'ok' ? 'ok' : 'miss';
  return { record, state, found, zone: answer.zone, server: answer.server };
}

async function verdictOf(deps: CheckDeps, required: readonly Looked[], lowers: boolean): Promise<Verdict> {
  if (required.every(({ state }) => state === 'ok')) return 'ok';
  const misses = required.filter(({ state }) => state === 'miss');
  if (misses.length === 0) return 'unknown';
  if (!lowers) return required.some(({ state }) => state === 'unknown') ? 'unknown' : 'miss';
  const agreed = await Promise.all(misses.map((miss) => othersAgree(deps, miss)));
  return agreed.includes(true) ? 'miss' : 'unknown';
}

/** No other server of the zone that answers with authority has the value. */
async function othersAgree({ dnsResolver, dnsPlatform }: CheckDeps, { record, zone, server }: Looked): Promise<boolean> {
  const delegation = zone === null || zone === '' ? null : await dnsResolver.delegation(zone, { budgetMs: confirmBudgetMs });
  const addresses = delegation === null ? [] : addressesOf(delegation).filter((address) => address !== server).slice(0, otherServersMax);
  const answers = await Promise.all(addresses.map((address) => {
    const port = dnsPlatform.servers.find((own) => own.addresses.includes(address))?.port;
    return dnsResolver.askServer(port === undefined ? { address } : { address, port }, record.name, record.type);
  }));
  return !answers.some(({ authoritative, records }) =>
    authoritative && statusOfFound(record, records.filter(({ type }) => type === record.type).map(({ value }) => value)) === 'ok');
}

/** One address of each server first, so that few questions reach many of them. */
function addressesOf({ nameservers }: Delegation): string[] {
  return [...new Set([...nameservers.flatMap(({ addresses }) => addresses.slice(0, 1)), ...nameservers.flatMap(({ addresses }) => addresses.slice(1))])];
}

/** What is not certain keeps what was found before; a record that nothing was ever found out about is unknown. */
function foundOf({ record, state, found }: Looked, uncertain: boolean): FoundRecord[] {
  if (state !== 'unknown' && !uncertain) return [{ name: record.name, status: statusOfFound(record, found), found: shownFound(found) }];
  return record.status === 'pending' ? [{ name: record.name, status: 'unknown', found: [] }] : [];
}
