import type { DnsDeps } from './deps';
import { nameserversOf, tokenNames } from './rules/platform';
import type { Delegation } from './ports';
import type { Problem, Report } from './report';
import { statusReasons, type CheckResult, type StatusReason } from './state';
import { findParentDelegation } from './store/parents';
import { listProxiedNames } from './store/records';
import type { ZoneRow } from './store/zones';
import { verificationRecord } from './view';

export type CheckDeps = Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsResolver' | 'clock'>;

/** What a check says of a claim; nothing is written yet. */
export type Check = {
  report: Omit<Report, 'cached' | 'nextCheckAt'>;
  result: CheckResult;
  reason: StatusReason | null;
  /** Problems that degrade a live zone at once, and those of servers, which must be seen twice. */
  degrading: boolean; serverProblems: boolean;
  /** A conclusive answer in which nothing of ours was found. */
  miss: boolean;
  /** The delegation leads to our addresses and does not prove this claim. */
  misdelegated: boolean;
  provenNow: boolean;
  seenNameservers: string[];
};

/** Who is responsible is asked first, then what they say: with the 3 s of a server's two attempts, 8 s in all. */
const budgetMs = 4_500;
const followMs = 3_000;
const serversMax = 13;
const cnamesMax = 25;

/** Asks DNS who answers for the domain (contract dns.md §4.5): never longer than 8 s, never throws for what DNS says. */
export async function checkZone(deps: CheckDeps, zone: ZoneRow): Promise<Check> {
  const startedAt = deps.clock.now();
  const facts = zone.mode === 'external' ? await checkExternal(deps, zone) : await checkHosted(deps, zone);
  const { report, ...rest } = facts;
  return { ...rest, report: { ...report, checkedAt: startedAt.toISOString(), durationMs: deps.clock.now().getTime() - startedAt.getTime(), result: rest.result } };
}

type Facts = Omit<Check, 'report'> & { report: Omit<Check['report'], 'checkedAt' | 'durationMs' | 'result'> };

async function checkHosted(deps: CheckDeps, zone: ZoneRow): Promise<Facts> {
  const asksTxt = zone.customNameservers.length > 0 && zone.provenAt === null;
  const [delegation, ds, txt] = await Promise.all([delegationOf(deps, zone), readDs(deps, zone), asksTxt ? readTxt(deps, zone) : null]);
  const current = nameserversOf(deps.dnsPlatform, zone);
  const tokens = tokenNames(deps.dnsPlatform, zone.token);
  const former = zone.formerUntil && zone.formerUntil > deps.clock.now() ? zone.formerNameservers : [];
  const expected = new Set([...current, ...tokens, ...former]);
  const found = delegation.nameservers.map(({ name }) => name);
  const missing = current.filter((name) => !found.includes(name));
  const unexpected = found.filter((name) => !expected.has(name));
  const ours = found.filter((name) => expected.has(name));
  const proven = zone.customNameservers.length === 0 || zone.provenAt !== null || found.some((name) => tokens.includes(name)) || (txt?.proves ?? false);
  const servers = delegation.conclusive ? await askServers(deps, zone, delegation) : [];
  const problems = hostedProblems({ zone, delegation, current, missing, unexpected, ours, proven, servers, ds });
  const complete = delegation.conclusive && delegation.consistent && unexpected.length === 0 && ours.length >= 2 && proven;
  const result: CheckResult = !delegation.conclusive ? 'inconclusive' : complete ? 'verified' : 'not_verified';
  const ourAddresses = new Set(deps.dnsPlatform.servers.flatMap(({ addresses }) => addresses));
  return {
    result, reason: reasonOf(problems), seenNameservers: [], provenNow: result === 'verified',
    degrading: problems.some(({ code }) => degrading.has(code)),
    serverProblems: problems.some(({ code }) => code === 'server_lame' || code === 'server_unreachable'),
    miss: delegation.conclusive && ours.length === 0,
    misdelegated: delegation.conclusive && !complete && delegation.nameservers.some(({ addresses }) => addresses.some((address) => ourAddresses.has(address))),
    report: {
      method: 'nameservers', delegation: shownDelegation(delegation), expected: current, missing, unexpected, servers, txt: txt && { name: txt.name, found: txt.found }, cnames: [],
      dnssec: { parentDs: ds, status: ds.length > 0 ? 'broken' : 'insecure' }, problems,
    },
  };
}

async function checkExternal(deps: CheckDeps, zone: ZoneRow): Promise<Facts> {
  const [delegation, txt] = await Promise.all([delegationOf(deps, zone), readTxt(deps, zone)]);
  const cnames = txt.proves ? await checkCnames(deps, zone) : [];
  const found = delegation.nameservers.map(({ name }) => name);
  const problems: Problem[] = [];
  const record = verificationRecord(zone);
  if (delegation.outcome === 'nxdomain') problems.push(unregistered(zone));
  else if (txt.conclusive && !txt.proves) problems.push(problem(zone.provenAt ? 'txt_missing' : 'awaiting_txt', 'critical', `${record.name} has no TXT record with our value.`, `Set TXT ${record.name} to "${record.value}" at the provider of ${zone.domain}.`));
  for (const { name, target, ok } of cnames) if (!ok) problems.push(problem('cname_missing', 'critical', `${name} does not lead to our gateway.`, `Set CNAME ${name} to ${target}.`));
  const unexpected = zone.customNameservers.length > 0 ? found.filter((name) => !zone.customNameservers.includes(name)) : [];
  if (unexpected.length > 0) problems.push(problem('foreign_nameservers', 'warning', `${zone.domain} is delegated to ${unexpected.join(', ')}.`, 'Correct the zone\'s customNameservers if this is meant.'));
  const conclusive = txt.conclusive || delegation.outcome === 'nxdomain';
  return {
    result: txt.proves ? 'verified' : conclusive ? 'not_verified' : 'inconclusive', reason: reasonOf(problems), seenNameservers: found, provenNow: txt.proves,
    degrading: problems.some(({ code }) => code === 'cname_missing'), serverProblems: false, miss: conclusive && !txt.proves, misdelegated: false,
    report: {
      method: 'txt', delegation: shownDelegation(delegation), expected: zone.customNameservers, missing: [], unexpected, servers: [], txt: { name: txt.name, found: txt.found }, cnames,
      dnssec: { parentDs: [], status: 'insecure' }, problems,
    },
  };
}

type Seen = Delegation & { source: 'network' | 'hosted_parent' };

/** The closest zone above that is answered here delegates by its own NS records; else the parent's servers say. */
async function delegationOf(deps: CheckDeps, zone: ZoneRow): Promise<Seen> {
  const parent = await findParentDelegation(deps.db.prisma, zone.domain);
  if (!parent) return { ...await deps.dnsResolver.delegation(zone.domain, { budgetMs }), source: 'network' };
  const addressesOf = (name: string): string[] => {
    const index = tokenNames(deps.dnsPlatform, zone.token).indexOf(name);
    return [...(deps.dnsPlatform.servers[index]?.addresses ?? [])];
  };
  return {
    source: 'hosted_parent', outcome: parent.nameservers.length > 0 ? 'answer' : 'nodata', conclusive: true, consistent: true, ttl: parent.ttl, parentZone: parent.domain,
    parentServers: nameserversOf(deps.dnsPlatform, parent), nameservers: parent.nameservers.map((name) => ({ name, addresses: addressesOf(name) })),
  };
}

function shownDelegation({ outcome, parentZone, parentServers, nameservers, ttl, consistent, source }: Seen): Report['delegation'] {
  if (outcome !== 'answer' && nameservers.length === 0 && parentZone === '') return null;
  return { parentZone, parentServers, nameservers: nameservers.map(({ name }) => name), ttl, consistent, source };
}

async function readTxt(deps: CheckDeps, zone: ZoneRow): Promise<{ name: string; found: string[]; proves: boolean; conclusive: boolean }> {
  const { name, value } = verificationRecord(zone);
  const answer = await deps.dnsResolver.resolve(name, 'TXT', { freshness: 'live', budgetMs });
  const own = new Set(deps.dnsPlatform.servers.flatMap(({ addresses }) => addresses));
  const found = answer.records.filter(({ type }) => type === 'TXT').map((record) => record.value.slice(0, 512)).slice(0, 5);
  return { name, found, conclusive: answer.conclusive, proves: answer.conclusive && found.some((text) => text.trim() === value) && !(answer.server !== null && own.has(answer.server)) };
}

/** SOA over UDP and TCP at each address of the delegation. */
async function askServers(deps: CheckDeps, zone: ZoneRow, delegation: Seen): Promise<Report['servers']> {
  const targets = delegation.nameservers.flatMap(({ name, addresses }) => addresses.map((address) => ({ name, address }))).slice(0, serversMax);
  return Promise.all(targets.map(async ({ name, address }) => {
    const port = deps.dnsPlatform.servers.find((server) => server.addresses.includes(address))?.port;
    const at = port === undefined ? { address } : { address, port };
    const [udp, tcp] = await Promise.all([deps.dnsResolver.askServer(at, zone.domain, 'SOA'), deps.dnsResolver.askServer(at, zone.domain, 'SOA', { tcp: true })]);
    const serial = Number(udp.records.find(({ type }) => type === 'SOA')?.value.split(' ')[2] ?? Number.NaN);
    const answered = udp.outcome !== 'timeout';
    return {
      name, address, reachable: answered, authoritative: udp.authoritative && udp.outcome === 'answer', serial: Number.isFinite(serial) ? serial : null,
      tcp: tcp.outcome === 'answer', edns: answered, rttMs: answered ? udp.durationMs : null,
    };
  }));
}

async function readDs(deps: CheckDeps, zone: ZoneRow): Promise<string[]> {
  const answer = await deps.dnsResolver.resolve(zone.domain, 'DS', { freshness: 'live', budgetMs });
  return answer.records.filter(({ type }) => type === 'DS').map(({ value }) => value);
}

async function checkCnames(deps: CheckDeps, zone: ZoneRow): Promise<Report['cnames']> {
  const target = `${zone.cnameToken ?? ''}.${deps.dnsPlatform.edgeSuffix}`;
  const names = await listProxiedNames(deps.db.prisma, zone.id, cnamesMax);
  return Promise.all(names.filter((name) => name !== '@').map(async (name) => {
    const answer = await deps.dnsResolver.resolve(`${name}.${zone.domain}`, 'CNAME', { freshness: 'live', budgetMs: followMs });
    const points = answer.records.some(({ type, value }) => type === 'CNAME' && value === target);
    return { name: `${name}.${zone.domain}`, target, ok: points || !answer.conclusive };
  }));
}

type HostedFacts = {
  zone: ZoneRow; delegation: Seen; current: string[]; missing: string[]; unexpected: string[]; ours: string[]; proven: boolean; servers: Report['servers']; ds: string[];
};

const degrading = new Set(['foreign_nameservers', 'nameservers_missing', 'parent_inconsistent', 'stale_ds']);

/** In the order of their weight: the first is the zone's reason. */
function hostedProblems({ zone, delegation, current, missing, unexpected, ours, proven, servers, ds }: HostedFacts): Problem[] {
  if (!delegation.conclusive) return [];
  if (delegation.outcome === 'nxdomain') return [unregistered(zone)];
  const set = `Set the name servers of ${zone.domain} at the registrar to exactly ${current.join(' and ')}.`;
  const record = verificationRecord(zone);
  const problems: Problem[] = [];
  if (!delegation.consistent) problems.push(problem('parent_inconsistent', 'critical', `The servers of ${delegation.parentZone} disagree on who answers for ${zone.domain}.`, 'Wait until a change at the registrar has reached all of them.'));
  if (unexpected.length > 0) problems.push(problem('foreign_nameservers', 'critical', `${zone.domain} is delegated to ${unexpected.join(', ')}.`, set));
  else if (ours.length === 0) problems.push(problem('awaiting_nameservers', 'critical', `${zone.domain} is not delegated to our name servers.`, set));
  if (ours.length > 0 && ours.length < 2) problems.push(problem('nameservers_missing', 'critical', `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing from the delegation.`, set));
  if (ours.length > 0 && !proven) problems.push(problem('custom_nameservers_unproven', 'critical', 'Name servers of your own do not prove that the domain is yours.', `Set TXT ${record.name} to "${record.value}" at the present provider, or delegate to one of ${tokenHint(zone)} first.`));
  if (ds.length > 0) problems.push(problem('stale_ds', 'critical', 'The parent has DS records, and this zone is not signed: validating resolvers refuse it.', 'Remove the DS records at the registrar.'));
  for (const server of servers.filter(({ name }) => ours.includes(name))) {
    if (!server.reachable) problems.push(problem('server_unreachable', 'warning', `${server.name} (${server.address}) does not answer.`, 'Check that the address is right and that UDP and TCP port 53 reach it.'));
    else if (!server.authoritative) problems.push(problem('server_lame', 'warning', `${server.name} (${server.address}) does not answer for ${zone.domain}.`, 'Check that the name leads to our servers.'));
  }
  return problems;
}

function tokenHint(zone: ZoneRow): string {
  return `${zone.token}-1…`;
}

function unregistered(zone: ZoneRow): Problem {
  return problem('domain_not_registered', 'critical', `${zone.domain} does not exist in DNS.`, 'Register the domain, or correct its spelling.');
}

function problem(code: StatusReason, severity: Problem['severity'], message: string, fix: string): Problem {
  return { code, severity, message, fix };
}

/** The code of the weightiest problem; null when nothing is wrong. */
function reasonOf(problems: readonly Problem[]): StatusReason | null {
  const first = problems.find(({ severity }) => severity !== 'info');
  return statusReasons.find((reason) => reason === first?.code) ?? null;
}
