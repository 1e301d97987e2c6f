import { randomBytes } from 'node:crypto';
import { AppError } from '../core/errors';
import type { DnsDeps } from './deps';
import type { Delegation, DnsRecord, QueryBudget } from './ports';
import { withinBudget } from './query-budget';
import { fqdnOf, relativeName } from './rules/names';
import { RecordIndex } from './rules/record-index';
import { byText, recordTypes, type RecordType, type ZoneRecord } from './rules/rrset';
import { commonLabels, deeperLabels, dkimSelectors, providerOf, servicePrefixes } from './rules/scan-labels';
import { canonicalRecord, isProxiableName, ttlMax, ttlMin } from './rules/values';
import { recordWarnings } from './rules/warnings';
import { ScanAsker } from './scan-asker';
import type { ScanReport } from './scan-report';

export type ScanDeps = Pick<DnsDeps, 'dnsResolver' | 'dnsPlatform'>;
export type ScanWish = { domain: string; names: readonly string[]; deep: boolean };
type Source = ScanReport['records'][number]['source'];

const budgetMs = 10_000;
const deepBudgetMs = 20_000;
const queriesMax = 600;
const transferLimits = { bytesMax: 5 * 1024 * 1024, timeoutMs: 5_000 };
/** As many as the largest zone here may hold. */
const transferredMax = 10_000;
/** Made by whoever signs a zone: RRSIG, NSEC, DNSKEY, NSEC3, NSEC3PARAM, CDS, CDNSKEY. */
const signing = new Set(['RRSIG', 'NSEC', 'DNSKEY', 'TYPE50', 'TYPE51', 'TYPE59', 'TYPE60']);
const followedMax = 100;
const walkMax = 500;
const apexTypes = ['A', 'AAAA', 'MX', 'TXT', 'CAA'] as const;
const hostTypes = ['AAAA', 'MX', 'TXT'] as const;

/** What the name servers of a domain answer about names that domains often have. Nothing is written. Errors: `domain_not_found`. */
export async function scanDomain(given: ScanDeps, wish: ScanWish): Promise<ScanReport> {
  const budget: QueryBudget = { queriesLeft: queriesMax };
  const deps = { ...given, dnsResolver: withinBudget(given.dnsResolver, budget) };
  const startedAt = Date.now();
  const endsAt = startedAt + (wish.deep ? deepBudgetMs : budgetMs);
  const delegation = await serversOf(deps, wish.domain);
  if (delegation.outcome === 'nxdomain' && delegation.conclusive) throw new AppError('domain_not_found', `${wish.domain} does not exist in DNS. Check its spelling.`, { domain: wish.domain });
  const { good, warning } = await usableServers(deps, wish.domain, delegation);
  const asker = new ScanAsker(deps.dnsResolver, { servers: good, endsAt, budget });
  const scan = new Scan(wish, asker, deps);
  const ds = await deps.dnsResolver.resolve(wish.domain, 'DS', { freshness: 'live', budgetMs: 3_000 });
  const parentDs = ds.records.filter(({ type }) => type === 'DS').map(({ value }) => value);
  const keys = good.length > 0 ? await asker.records(wish.domain, 'DNSKEY') : [];
  const soa = good.length > 0 ? await scan.run() : null;
  return {
    domain: wish.domain, nameservers: delegation.nameservers.map(({ name, addresses }) => ({ name, addresses, provider: providerOf(name) })),
    ...scan.found(), dnssec: { signed: keys.length > 0 || parentDs.length > 0, ds: parentDs }, soa, warnings: warning ? [warning] : [],
    complete: good.length > 0 && asker.complete, cached: false, stats: { queries: queriesMax - budget.queriesLeft, names: scan.names, durationMs: Date.now() - startedAt },
  };
}

/** A name inside a zone is answered by that zone's servers. */
async function serversOf({ dnsResolver }: ScanDeps, domain: string): Promise<Delegation> {
  const delegation = await dnsResolver.delegation(domain, { budgetMs: 4_000 });
  if (delegation.outcome !== 'nodata') return delegation;
  const { zone } = await dnsResolver.resolve(domain, 'SOA', { freshness: 'live', budgetMs: 3_000 });
  return zone === null || zone === '' ? delegation : dnsResolver.delegation(zone, { budgetMs: 3_000 });
}

type Usable = { good: { address: string; port?: number }[]; warning: { code: 'lame_delegation' | 'servers_unreachable'; message: string } | null };

async function usableServers({ dnsResolver, dnsPlatform }: ScanDeps, domain: string, delegation: Delegation): Promise<Usable> {
  const addresses = [...new Set(delegation.nameservers.flatMap((server) => server.addresses))].slice(0, 8);
  const answers = await Promise.all(addresses.map(async (address) => {
    const port = dnsPlatform.servers.find((server) => server.addresses.includes(address))?.port;
    const server = port === undefined ? { address } : { address, port };
    return { server, answer: await dnsResolver.askServer(server, domain, 'SOA') };
  }));
  const good = answers.filter(({ answer }) => answer.authoritative).map(({ server }) => server);
  if (good.length > 0) return { good, warning: null };
  const heard = answers.some(({ answer }) => answer.outcome !== 'timeout');
  return {
    good, warning: heard ? { code: 'lame_delegation', message: `The name servers of ${domain} do not answer for it.` }
      : { code: 'servers_unreachable', message: `No name server of ${domain} could be reached.` },
  };
}

class Scan {
  names = 0;
  private readonly rows = new Map<string, DnsRecord & { source: Source }>();
  private readonly wildcard = new Map<string, string>();
  private readonly seen = new Set<string>();

  constructor(private readonly wish: ScanWish, private readonly asker: ScanAsker, private readonly deps: ScanDeps) {}

  async run(): Promise<ScanReport['soa']> {
    const { domain, deep } = this.wish;
    const [soa] = await this.asker.records(domain, 'SOA');
    await this.asker.each(apexTypes, async (type) => this.keep(await this.asker.records(domain, type), 'apex'));
    await this.readWildcard();
    if (!(deep && await this.transfer())) await this.search();
    const [mname = '', , serial = '0'] = soa?.value.split(' ') ?? [];
    return soa ? { mname, serial: Number(serial) } : null;
  }

  private async search(): Promise<void> {
    if (this.wish.deep) await this.walk();
    await this.visit(this.wish.names, 'names');
    await this.visit(commonLabels, 'common');
    await this.visit([...servicePrefixes, ...dkimSelectors], 'common', ['TXT']);
    await this.visit(this.mentioned(), 'discovered');
  }

  /** What two names nobody can have made are answered with is the wildcard's. */
  private async readWildcard(): Promise<void> {
    for (let i = 0; i < 2; i++) {
      const name = `${randomBytes(9).toString('hex')}.${this.wish.domain}`;
      for (const type of ['A', ...hostTypes] as const) {
        for (const record of await this.asker.records(name, type)) this.keepWildcard(record);
      }
    }
  }

  private keepWildcard(record: DnsRecord): void {
    this.wildcard.set(`${record.type} ${record.value}`, record.type);
    this.keep([{ ...record, name: `*.${this.wish.domain}` }], 'common');
  }

  private async visit(names: readonly string[], source: Source, types: readonly RecordType[] = hostTypes): Promise<void> {
    const fresh = [...new Set(names)].filter((name) => !this.seen.has(name));
    for (const name of fresh) this.seen.add(name);
    await this.asker.each(fresh, (name) => this.visitOne(name, source, types));
  }

  /** A name that does not exist costs one question. */
  private async visitOne(name: string, source: Source, types: readonly RecordType[]): Promise<void> {
    this.names++;
    const fqdn = fqdnOf(name, this.wish.domain);
    const [first = 'A'] = types === hostTypes ? ['A' as const] : types;
    const answer = await this.asker.ask(fqdn, first);
    if (answer === null) return this.visitCut(name, fqdn, source);
    if (answer.outcome === 'nxdomain') return;
    const found = await this.asker.records(fqdn, first);
    const isAlias = found.some(({ type }) => type === 'CNAME');
    for (const type of isAlias ? [] : types) if (type !== first) found.push(...await this.asker.records(fqdn, type));
    this.keep(found.filter((record) => !this.wildcard.has(`${record.type} ${record.value}`)), source);
    if (found.length === 0 && this.wildcard.size === 0 && !name.includes('.')) await this.deeper(name);
  }

  /** No word of authority about a name: it may be delegated. */
  private async visitCut(name: string, fqdn: string, source: Source): Promise<void> {
    if (!this.asker.complete || name === '@') return;
    const { outcome, conclusive, nameservers, ttl } = await this.deps.dnsResolver.delegation(fqdn, { budgetMs: 2_000 });
    if (conclusive && outcome === 'answer') this.keep(nameservers.map((server) => ({ name: fqdn, type: 'NS', ttl, value: server.name })), source);
  }

  private async deeper(name: string): Promise<void> {
    for (const label of deeperLabels) {
      const below = `${label}.${name}`;
      if (this.seen.has(below)) continue;
      this.seen.add(below);
      await this.visitOne(below, 'discovered', hostTypes);
    }
  }

  /** In-zone hosts of MX, CNAME and NS records, and names of SPF. */
  private mentioned(): string[] {
    const targets = [...this.rows.values()].flatMap(({ type, value }) => {
      if (type === 'MX') return [value.split(' ')[1] ?? ''];
      if (type === 'TXT' && value.startsWith('v=spf1')) return [...value.matchAll(/\b(?:include|a|mx|redirect)[:=]([^\s/]+)/g)].map(([, host = '']) => host.toLowerCase());
      return type === 'CNAME' || type === 'NS' ? [value] : [];
    });
    return targets.flatMap((host) => relativeName(host, this.wish.domain) ?? []).filter((name) => name !== '@').slice(0, followedMax);
  }

  /** Each server is asked once for the whole zone; the first that gives it has said all there is. */
  private async transfer(): Promise<boolean> {
    const { domain } = this.wish;
    for (const server of this.asker.servers) {
      const transfer = this.asker.mayStill(transferLimits.timeoutMs) ? await this.deps.dnsResolver.transferZone?.(server, domain, transferLimits) : undefined;
      if (transfer?.outcome !== 'zone') continue;
      const found = transfer.records.filter(({ name, type }) => !signing.has(type) && type !== 'SOA' && !(type === 'NS' && name === domain));
      this.names = new Set(found.map(({ name }) => name)).size;
      this.asker.complete &&= found.length <= transferredMax;
      this.keep(found.slice(0, transferredMax), 'transfer');
      return true;
    }
    return false;
  }

  /** A signed zone names its next name in every NSEC record (RFC 4034 §4). */
  private async walk(): Promise<void> {
    const { domain } = this.wish;
    const names: string[] = [];
    for (let at = domain; names.length < walkMax;) {
      const [record] = (await this.asker.records(at, 'NSEC')).filter(({ type }) => type === 'NSEC');
      const next = record?.value.split(' ')[0]?.toLowerCase() ?? '';
      const name = relativeName(next, domain);
      if (name === null || name === '@' || names.includes(name) || next.startsWith('\\000')) break;
      names.push(name);
      at = next;
    }
    await this.visit(names, 'nsec');
  }

  private keep(records: readonly DnsRecord[], source: Source): void {
    for (const record of records) {
      const key = `${record.name} ${record.type} ${record.value}`;
      if (!this.rows.has(key)) this.rows.set(key, { ...record, source });
    }
  }

  found(): Pick<ScanReport, 'records' | 'unsupported' | 'wildcard'> {
    const { domain } = this.wish;
    const records: (ZoneRecord & { source: Source })[] = [];
    const unsupported: ScanReport['unsupported'] = [];
    for (const row of [...this.rows.values()].sort((a, b) => byText(`${a.name} ${a.type} ${a.value}`, `${b.name} ${b.type} ${b.value}`))) {
      const record = asRecord(row, domain);
      if (record) records.push({ ...record, source: row.source });
      else unsupported.push({ name: relativeName(row.name, domain) ?? row.name, type: row.type, value: row.value });
    }
    const index = new RecordIndex(domain, records);
    return {
      records: records.map((record) => ({
        type: record.type, name: record.name, value: record.value, ttl: record.ttl, priority: record.priority, source: record.source,
        proxiable: isProxiableName(record.type, record.name), warnings: recordWarnings(index, [record]),
      })),
      unsupported, wildcard: { present: this.wildcard.size > 0, types: [...new Set(this.wildcard.values())].sort(byText) },
    };
  }
}

/** What was found as a record of ours could be created; null when ours cannot say it. */
function asRecord(row: DnsRecord, domain: string): ZoneRecord | null {
  const type = recordTypes.find((candidate) => candidate === row.type);
  const name = relativeName(row.name, domain);
  if (!type || name === null) return null;
  const [, preference = null, host = ''] = type === 'MX' ? (/^(\d+) (.+)$/.exec(row.value) ?? []) : [];
  const value = type === 'MX' ? host : row.value;
  const parsed = canonicalRecord({ type, name, value: type === 'TXT' && value.startsWith('"') ? quoted(value) : value, priority: preference === null ? null : Number(preference), proxied: false }, domain);
  if (parsed.faults) return null;
  return {
    id: `${row.name} ${row.type} ${row.value}`, type, name, value: parsed.value, priority: parsed.priority, ttl: Math.min(ttlMax, Math.max(ttlMin, row.ttl)), proxied: false,
    originProtocol: null, originPort: null, originPath: null, originHostHeader: null,
  };
}

/** A text that would itself parse as quoted strings is told literally. */
function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
