import type { Delegation, DnsRecord, DnsResolver, QueryBudget, QueryType, Resolution, ServerAnswer, ZoneTransfer } from '../../dns/ports';
import { typeNumbers, flags as bits } from '../../dns/rules/wire/codes';
import { MalformedDns, parentOf, root, textName, wireName, type WireName } from '../../dns/rules/wire/name';
import { transferZone } from '../dns-backend/axfr-client';
import { Errand, type Heard } from './errand';
import { ExpiringMap } from './referral-cache';
import { readReply } from './reply';
import { routeTo } from './routes';
import { Walk, type Failure, type Said, type WalkOptions } from './walk';

const queriesMax = 60;
const budgetDefaultMs = 8000;
const hopsMax = 8;
const cachedSecondsMax = 300;
const answersMax = 20_000;

type Found = Pick<Resolution, 'outcome' | 'conclusive' | 'canonicalName' | 'records' | 'ttl' | 'zone' | 'server'>;

/**
 * Resolves from the root hints down, asking the servers responsible themselves (contract dns.md §6.1). Nothing is believed
 * outside the zone of the server that said it, and no packet goes to an address that is not public, but for the
 * exceptions of `RouteRules`.
 */
export class IterativeResolver implements DnsResolver {
  private readonly walk: Walk;
  private readonly answers: ExpiringMap<Found>;
  private readonly heard = new WeakMap<QueryBudget, Heard>();

  constructor(private readonly options: WalkOptions) {
    this.walk = new Walk(options);
    this.answers = new ExpiringMap(answersMax, options.nowMs);
  }

  async resolve(name: string, type: QueryType, { freshness = 'live', budgetMs = budgetDefaultMs, budget }: { freshness?: 'live' | 'cached'; budgetMs?: number; budget?: QueryBudget } = {}): Promise<Resolution> {
    const errand = this.errand(budgetMs, budget);
    const key = `${type} ${name.toLowerCase()}`;
    const known = freshness === 'cached' ? this.answers.get(key) : undefined;
    if (known) return { ...known.value, ttl: Math.min(known.value.ttl, known.secondsLeft), queries: 0, durationMs: 0 };
    const found = await this.follow(errand, wireNameOrNull(name), type, freshness);
    if (found.conclusive) this.answers.put(key, found, Math.min(found.ttl, cachedSecondsMax));
    return { ...found, queries: errand.queries, durationMs: errand.durationMs };
  }

  async delegation(name: string, { budgetMs = budgetDefaultMs, budget }: { budgetMs?: number; budget?: QueryBudget } = {}): Promise<Delegation> {
    const errand = this.errand(budgetMs, budget);
    const wire = wireNameOrNull(name);
    const above = wire === null || wire === root ? 'servfail' : await this.walk.parents(errand, wire);
    if (wire === null || typeof above === 'string') return { ...unknownDelegation, outcome: typeof above === 'string' ? above : 'servfail' };
    const seen = delegationOf(above.said, wire);
    const nameservers: Delegation['nameservers'] = [];
    for (const [host, glue] of seen.hosts) nameservers.push({ name: textName(host), addresses: glue.length > 0 ? glue : [...(await this.walk.addressesOf(errand, host))] });
    return { outcome: seen.outcome, conclusive: seen.conclusive, consistent: seen.consistent, ttl: seen.ttl, parentZone: textName(above.zone), parentServers: above.hosts.map(textName), nameservers };
  }

  async askServer(server: { address: string; port?: number }, name: string, type: QueryType, { tcp = false, budget }: { tcp?: boolean; budget?: QueryBudget } = {}): Promise<ServerAnswer> {
    const errand = this.errand(2 * this.options.timeoutMs, budget);
    const wire = wireNameOrNull(name);
    const question = wire === null ? null : { name: wire, type: typeNumbers[type] };
    const port = server.port === undefined ? {} : { port: server.port };
    const message = question && (await this.walk.askAddress(errand, server.address, question, { tcp, tries: 2, ...port }));
    const silent: ServerAnswer = { outcome: 'timeout', records: [], durationMs: errand.durationMs, authoritative: false };
    if (!message || !question) return silent;
    const reply = readReply(message, question, root);
    const authoritative = (message.flags & bits.aa) !== 0 && 'records' in reply;
    if ('records' in reply) return { ...silent, outcome: reply.kind, records: reply.records, authoritative };
    return { ...silent, outcome: reply.kind === 'refused' ? 'refused' : reply.kind === 'servfail' ? 'servfail' : 'nodata' };
  }

  transferZone({ address, port }: { address: string; port?: number }, domain: string, limits: { bytesMax: number; timeoutMs: number }): Promise<ZoneTransfer> {
    const wire = wireNameOrNull(domain);
    const route = wire === null ? null : routeTo(address, textName(wire), this.options);
    return route && (port === undefined || port === route.port) ? transferZone({ server: route, domain, ...limits }) : Promise.resolve({ outcome: 'refused' });
  }

  /** Follows CNAMEs from zone to zone. */
  private async follow(errand: Errand, start: WireName | null, type: QueryType, freshness: 'live' | 'cached'): Promise<Found> {
    const records: DnsRecord[] = [];
    if (start === null) return failed('servfail', '', records);
    let name = start;
    for (let hops = 0; hops <= hopsMax; hops++) {
      const said = await this.walk.final(errand, { name, type: typeNumbers[type] }, trustedFor(name, type, freshness));
      if (typeof said === 'string') return failed(said, textName(name), records);
      const { reply } = said;
      records.push(...reply.records);
      if (reply.kind === 'answer' || reply.alias === name) return found(said.reply, said, records);
      name = reply.alias;
    }
    return failed('servfail', textName(name), records);
  }

  private errand(budgetMs: number, shared?: QueryBudget): Errand {
    const heard: Heard = (shared && this.heard.get(shared)) ?? { referrals: new Map(), answers: new Map() };
    if (shared) this.heard.set(shared, heard);
    return new Errand({ queriesMax, budgetMs, shared, heard }, this.options.nowMs);
  }
}

/** Live: only servers known from above the name's parent are trusted. DS is the parent's to tell. */
function trustedFor(name: WireName, type: QueryType, freshness: 'live' | 'cached'): WireName {
  if (freshness === 'live') return parentOf(parentOf(name));
  return type === 'DS' ? parentOf(name) : name;
}

function found(reply: Extract<Said['reply'], { records: unknown }>, { servers, address }: Pick<Said, 'servers' | 'address'>, records: DnsRecord[]): Found {
  const ttl = Math.min(...records.map((record) => record.ttl), ...(reply.kind === 'answer' ? [] : [reply.negativeTtl]));
  return { outcome: reply.kind, conclusive: true, canonicalName: textName(reply.alias), records, ttl, zone: textName(servers.zone), server: address };
}

function failed(outcome: Failure, canonicalName: string, records: DnsRecord[]): Found {
  return { outcome, conclusive: false, canonicalName, records, ttl: 0, zone: null, server: null };
}

const unknownDelegation = { conclusive: false, consistent: true, ttl: 0, parentZone: '', parentServers: [], nameservers: [] };

/** What the parent's servers agree on. The child's own word, an authoritative answer, does not count. */
function delegationOf(said: readonly (Said | Failure)[], name: WireName): Pick<Delegation, 'outcome' | 'conclusive' | 'consistent' | 'ttl'> & { hosts: Map<WireName, string[]> } {
  const hosts = new Map<WireName, string[]>();
  const statements = new Set<string>();
  let ttl = Infinity;
  for (const one of said) {
    if (typeof one === 'string') continue;
    const { reply } = one;
    if (reply.kind === 'nxdomain' || reply.kind === 'nodata') statements.add(reply.kind);
    if (reply.kind !== 'referral' || reply.referral.zone !== name) continue;
    statements.add(`NS ${reply.referral.hosts.map((host) => host.name).sort().join(' ')}`);
    for (const host of reply.referral.hosts) hosts.set(host.name, [...new Set([...(hosts.get(host.name) ?? []), ...host.addresses])]);
    ttl = Math.min(ttl, reply.referral.ttl);
  }
  const [first = ''] = statements;
  const outcome = hosts.size > 0 ? 'answer' : first === 'nxdomain' || first === 'nodata' ? first : (said.find((one) => typeof one === 'string') ?? 'servfail');
  return { outcome, conclusive: statements.size > 0, consistent: statements.size <= 1, ttl: Number.isFinite(ttl) ? ttl : 0, hosts };
}

function wireNameOrNull(name: string): WireName | null {
  try {
    return wireName(name.toLowerCase());
  } catch (error) {
    if (error instanceof MalformedDns) return null;
    throw error;
  }
}
