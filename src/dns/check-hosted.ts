import { askMs, problem, reasonOf, unregistered, type CheckDeps, type CheckFacts } from './check-facts';
import { findAddresses, isElsewhere, type Host } from './nameservers';
import { delegationOf, readTxt, shownDelegation, type Seen } from './parent-view';
import type { Problem, Report } from './report';
import { isAtOrBelow } from './rules/domains';
import { nameserversOf, ourAddresses, tokenNames } from './rules/platform';
import type { CheckResult } from './state';
import type { ZoneRow } from './store/zones';
import { verificationRecord } from './view';

const serversMax = 13;
const degrading = new Set(['foreign_nameservers', 'nameservers_missing', 'parent_inconsistent', 'custom_nameservers_unproven', 'custom_nameservers_wrong_address', 'stale_ds']);

/** A zone hosted here is proven by its delegation: two or more of its names, and no others (contract dns.md §4.5, 2). */
export async function checkHosted(deps: CheckDeps, zone: ZoneRow): Promise<CheckFacts> {
  const custom = zone.customNameservers;
  const asksTxt = custom.length > 0 && zone.provenAt === null;
  const [delegation, ds, txt, outside] = await Promise.all([
    delegationOf(deps, zone, askMs), readDs(deps, zone), asksTxt ? readTxt(deps, zone, askMs) : null,
    Promise.all(custom.filter((name) => !isAtOrBelow(name, zone.domain)).map((name) => findAddresses(deps, name, askMs))),
  ]);
  const names = namesOf(deps, zone, delegation);
  const elsewhere = names.found.filter((name) => custom.includes(name)).map((name) => hostOf(name, delegation, outside)).filter((host) => isElsewhere(deps, host));
  const proof = names.found.some((name) => names.tokens.includes(name)) || (txt?.proves ?? false) || isRemembered(zone, names.found, elsewhere);
  const proven = custom.length === 0 || zone.provenAt !== null || proof;
  const servers = delegation.conclusive ? await askServers(deps, zone, delegation) : [];
  const own = ourAddresses(deps.dnsPlatform);
  const problems = problemsOf({ zone, delegation, names, proven, wrong: elsewhere.map((host) => wrongAddress(zone, host, [...own].join(', '))), servers, ds });
  const complete = delegation.conclusive && delegation.consistent && names.unexpected.length === 0 && names.ours.length >= 2 && proven;
  const result: CheckResult = !delegation.conclusive ? 'inconclusive' : complete ? 'verified' : 'not_verified';
  return {
    result, reason: reasonOf(problems), seenNameservers: [], cnameCursor: null,
    provenNow: result === 'verified' || (custom.length > 0 && proof && (delegation.conclusive || (txt?.proves ?? false))),
    degrading: problems.some(({ code }) => degrading.has(code)),
    serverProblems: problems.some(({ code }) => code === 'server_lame' || code === 'server_unreachable'),
    miss: delegation.conclusive && names.ours.length === 0,
    misdelegated: delegation.conclusive && !complete && delegation.nameservers.some(({ addresses }) => addresses.some((address) => own.has(address))),
    report: {
      method: 'nameservers', delegation: shownDelegation(delegation), expected: names.current, missing: names.missing, unexpected: names.unexpected, servers,
      txt: txt && { name: txt.name, found: txt.found }, cnames: [], dnssec: { parentDs: ds, status: ds.length > 0 ? 'broken' : 'insecure' }, problems,
    },
  };
}

type Names = { current: string[]; tokens: string[]; found: string[]; ours: string[]; missing: string[]; unexpected: string[] };

/** `ours`: what may stand in the delegation: the present names, the token names, and for a week the former custom ones. */
function namesOf({ dnsPlatform, clock }: CheckDeps, zone: ZoneRow, delegation: Seen): Names {
  const current = nameserversOf(dnsPlatform, zone);
  const tokens = tokenNames(dnsPlatform, zone.token);
  const former = zone.formerUntil && zone.formerUntil > clock.now() ? zone.formerNameservers : [];
  const expected = new Set([...current, ...tokens, ...former]);
  const found = delegation.nameservers.map(({ name }) => name);
  return {
    current, tokens, found, ours: found.filter((name) => expected.has(name)), missing: current.filter((name) => !found.includes(name)),
    unexpected: found.filter((name) => !expected.has(name)),
  };
}

/** Names inside the zone have the addresses that the parent gives with them, others their own. */
function hostOf(name: string, delegation: Seen, outside: readonly Host[]): Host {
  const glue = delegation.nameservers.find((host) => host.name === name)?.addresses ?? [];
  return outside.find((host) => host.name === name) ?? { name, addresses: glue, conclusive: delegation.conclusive };
}

/** The delegation is the one under which this project's claim on the domain was proven last: nobody has changed it since. */
function isRemembered(zone: ZoneRow, found: readonly string[], elsewhere: readonly Host[]): boolean {
  return found.length > 0 && elsewhere.length === 0 && found.every((name) => zone.provenNameservers.includes(name));
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
      tcp: tcp.authoritative && tcp.outcome === 'answer', edns: answered, rttMs: answered ? udp.durationMs : null,
    };
  }));
}

async function readDs(deps: CheckDeps, zone: ZoneRow): Promise<string[]> {
  const answer = await deps.dnsResolver.resolve(zone.domain, 'DS', { freshness: 'live', budgetMs: askMs });
  return answer.records.filter(({ type }) => type === 'DS').map(({ value }) => value);
}

type Found = { zone: ZoneRow; delegation: Seen; names: Names; proven: boolean; wrong: readonly Problem[]; servers: Report['servers']; ds: string[] };

/** In the order of their weight: the first is the zone's reason. */
function problemsOf({ zone, delegation, names, proven, wrong, servers, ds }: Found): Problem[] {
  if (!delegation.conclusive) return [];
  if (delegation.outcome === 'nxdomain') return [unregistered(zone)];
  const { current, tokens, ours, missing, unexpected } = names;
  const set = `Set the name servers of ${zone.domain} at the registrar to exactly ${current.join(' and ')}.`;
  const record = verificationRecord(zone);
  const problems: Problem[] = [];
  if (!delegation.consistent) problems.push(problem('parent_inconsistent', 'critical', `The servers of ${delegation.parentZone} disagree on who answers for ${zone.domain}.`, 'Wait until a change at the registrar has reached all of them.'));
  if (unexpected.length > 0) problems.push(problem('foreign_nameservers', 'critical', `${zone.domain} is delegated to ${unexpected.join(', ')}.`, set));
  else if (ours.length === 0) problems.push(problem('awaiting_nameservers', 'critical', `${zone.domain} is not delegated to our name servers.`, set));
  if (ours.length === 1) problems.push(problem('nameservers_missing', 'critical', `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing from the delegation.`, set));
  if (ours.length > 0 && !proven) problems.push(problem('custom_nameservers_unproven', 'critical', 'Name servers of your own do not prove that the domain is yours.', `Set TXT ${record.name} to "${record.value}" at the present provider, or delegate ${zone.domain} to ${tokens.join(' and ')} first.`));
  problems.push(...wrong);
  if (ds.length > 0) problems.push(problem('stale_ds', 'critical', 'The parent has DS records, and this zone is not signed: validating resolvers refuse it.', 'Remove the DS records at the registrar.'));
  for (const server of servers.filter(({ name }) => ours.includes(name))) {
    if (!server.reachable) problems.push(problem('server_unreachable', 'warning', `${server.name} (${server.address}) does not answer.`, 'Check that the address is right and that UDP and TCP port 53 reach it.'));
    else if (!server.authoritative) problems.push(problem('server_lame', 'warning', `${server.name} (${server.address}) does not answer for ${zone.domain}.`, 'Check that the name leads to our servers.'));
    else if (!server.tcp) problems.push(problem('server_unreachable', 'warning', `${server.name} (${server.address}) does not answer over TCP.`, 'Check that TCP port 53 reaches it.'));
  }
  return problems;
}

function wrongAddress(zone: ZoneRow, { name, addresses }: Host, ours: string): Problem {
  const leads = addresses.length > 0 ? `leads to ${addresses.join(', ')}, not only to our name servers` : 'has no address';
  const fix = isAtOrBelow(name, zone.domain) ? `Register ${name} at the registrar with the addresses that the zone shows as its glue.` : `Set the addresses of ${name} to those of our name servers: ${ours}.`;
  return problem('custom_nameservers_wrong_address', 'critical', `${name} ${leads}.`, fix);
}
