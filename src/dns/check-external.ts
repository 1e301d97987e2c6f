import { askMs, followMs, problem, reasonOf, unregistered, type CheckDeps, type CheckFacts } from './check-facts';
import { cnameTargetOf } from './external';
import { delegationOf, readTxt, shownDelegation } from './parent-view';
import type { Problem, Report } from './report';
import { fqdnOf, relativeName } from './rules/names';
import { readReport } from './store/checks';
import { listProxiedInTurn } from './store/records';
import type { ZoneRow } from './store/zones';
import { verificationRecord } from './view';

const cnamesMax = 25;
type Cname = Report['cnames'][number];

/** A zone hosted elsewhere is proven by a TXT record at its own servers; its proxied names must lead to our gateway (contract dns.md §4.5, external). */
export async function checkExternal(deps: CheckDeps, zone: ZoneRow): Promise<CheckFacts> {
  const [delegation, txt] = await Promise.all([delegationOf(deps, zone, askMs), readTxt(deps, zone, askMs)]);
  const { cnames, cursor } = txt.proves ? await checkCnames(deps, zone) : { cnames: [], cursor: zone.cnameCursor };
  const found = delegation.nameservers.map(({ name }) => name);
  const problems: Problem[] = [];
  const record = verificationRecord(zone);
  if (delegation.outcome === 'nxdomain' && !txt.proves) problems.push(unregistered(zone));
  else if (txt.conclusive && !txt.proves) problems.push(problem(zone.provenAt ? 'txt_missing' : 'awaiting_txt', 'critical', `${record.name} has no TXT record with our value.`, `Set TXT ${record.name} to "${record.value}" at the provider of ${zone.domain}.`));
  for (const { name, target, ok } of cnames) if (!ok) problems.push(problem('cname_missing', 'critical', `${name} does not lead to our gateway.`, fixOf(deps, zone, { name, target })));
  const unexpected = zone.customNameservers.length > 0 ? found.filter((name) => !zone.customNameservers.includes(name)) : [];
  const missing = zone.customNameservers.filter((name) => delegation.conclusive && !found.includes(name));
  if (unexpected.length > 0) problems.push(problem('foreign_nameservers', 'warning', `${zone.domain} is delegated to ${unexpected.join(', ')}.`, "Correct the zone's customNameservers if this is meant."));
  const conclusive = txt.conclusive || (delegation.conclusive && delegation.outcome === 'nxdomain');
  return {
    result: txt.proves ? 'verified' : conclusive ? 'not_verified' : 'inconclusive', reason: reasonOf(problems), seenNameservers: found, provenNow: txt.proves, cnameCursor: cursor,
    degrading: problems.some(({ code }) => code === 'cname_missing'), serverProblems: false, miss: conclusive && !txt.proves, misdelegated: false,
    report: {
      method: 'txt', delegation: shownDelegation(delegation), expected: zone.customNameservers, missing, unexpected, servers: [], txt: { name: txt.name, found: txt.found }, cnames,
      dnssec: { parentDs: [], status: 'insecure' }, problems,
    },
  };
}

/** Those that led elsewhere at the last check, then as many others in turn as there is room for: a fault is not forgotten while others have their turn. */
async function checkCnames(deps: CheckDeps, zone: ZoneRow): Promise<{ cnames: Cname[]; cursor: string | null }> {
  const db = deps.db.prisma;
  const last = (await readReport(db, zone.id))?.report?.cnames ?? [];
  const verdicts = new Map(last.map(({ name, ok }) => [relativeName(name, zone.domain) ?? name, ok]));
  const proxied = await listProxiedInTurn(db, zone.id, zone.cnameCursor ?? '');
  const faulty = proxied.filter((name) => verdicts.get(name) === false).slice(0, cnamesMax - 1);
  const others = proxied.filter((name) => !faulty.includes(name)).slice(0, cnamesMax - faulty.length);
  const check = (name: string): Promise<Cname> => checkCname(deps, zone, name, verdicts.get(name) ?? true);
  // The first finds the way, which the budget has no room to find for each.
  const [first, ...rest] = [...faulty, ...others];
  const cnames = first === undefined ? [] : [await check(first), ...await Promise.all(rest.map(check))];
  return { cnames, cursor: others.at(-1) ?? zone.cnameCursor };
}

/** An alias to the zone's target, at whatever remove; at the apex, which can have none, the gateway's addresses. Without an answer the last verdict stands. */
async function checkCname(deps: CheckDeps, zone: ZoneRow, relative: string, before: boolean): Promise<Cname> {
  const name = fqdnOf(relative, zone.domain);
  const target = cnameTargetOf(deps.dnsPlatform, zone);
  const { ipv4, ipv6 } = deps.dnsPlatform.gatewayAddresses;
  const family = ipv4.length > 0 ? 'A' : 'AAAA';
  const answer = await deps.dnsResolver.resolve(name, family, { freshness: 'live', budgetMs: followMs });
  const addresses = answer.records.filter(({ type }) => type === family).map(({ value }) => value);
  const leads = answer.records.some(({ type, value }) => type === 'CNAME' && value === target) || (addresses.length > 0 && addresses.every((address) => [...ipv4, ...ipv6].includes(address)));
  return { name, target, ok: leads || (!answer.conclusive && before) };
}

function fixOf({ dnsPlatform: { gatewayAddresses } }: CheckDeps, zone: ZoneRow, { name, target }: Pick<Cname, 'name' | 'target'>): string {
  const addresses = [...gatewayAddresses.ipv4, ...gatewayAddresses.ipv6];
  return name === zone.domain && addresses.length > 0 ? `Set the addresses of ${name} to ${addresses.join(', ')}, or an alias record of its provider to ${target}.` : `Set CNAME ${name} to ${target}.`;
}
