import { parentOf, root, textName, wireName, type WireName } from '../../dns/rules/wire/name';
import { typeNumbers } from '../../dns/rules/wire/codes';
import type { WireMessage } from '../../dns/rules/wire/reader';
import type { Errand } from './errand';
import { exchange, type Question } from './exchange';
import { closestServers, ExpiringMap, type Servers } from './referral-cache';
import { readReply, type Referral, type Reply } from './reply';
import { routeTo, stubOf, type NameServer, type RouteRules } from './routes';

export type WalkOptions = RouteRules & { rootHints: readonly NameServer[]; timeoutMs: number; nowMs: () => number };

/** A server that answered, and for which zone it was asked. */
export type Said<R extends Reply = Reply> = { reply: R; servers: Servers; address: string };
export type Failure = 'servfail' | 'refused' | 'timeout';
export type Final = Extract<Reply, { records: unknown }>;

const depthMax = 12;
const addressesMax = 5;
const parentServersMax = 4;
const lookUpsMax = 40;
const referralSecondsMax = 600;
const zonesMax = 10_000;

/** Finds the servers of a name from the root down and asks them. */
export class Walk {
  private readonly referrals: ExpiringMap<Servers>;

  constructor(private readonly options: WalkOptions) {
    this.referrals = new ExpiringMap(zonesMax, options.nowMs);
  }

  /** What the servers responsible say; `trusted`: the deepest name whose servers may come from the cache. What this errand's check has heard itself is as good as asked now. */
  async final(errand: Errand, question: Question, trusted: WireName): Promise<Said<Final> | Failure> {
    const key = `${question.type} ${question.name}`;
    const heard = errand.heard.answers.get(key);
    if (heard) return heard;
    const said = await this.ask(errand, question, trusted);
    if (typeof said === 'object') errand.heard.answers.set(key, said);
    return said;
  }

  private async ask(errand: Errand, question: Question, trusted: WireName): Promise<Said<Final> | Failure> {
    let servers = this.start(errand, question.name, { cached: trusted, heard: question.type === typeNumbers.DS ? parentOf(question.name) : question.name });
    for (let depth = 0; depth < depthMax; depth++) {
      const said = await this.askZone(errand, servers, question);
      if (typeof said === 'string') return said;
      if ('records' in said.reply) return { ...said, reply: said.reply };
      if (said.reply.kind !== 'referral') return 'servfail';
      servers = this.remember(errand, said.reply.referral);
    }
    return 'servfail';
  }

  /** What up to four servers of the zone above say of the delegation of `name`, each for itself. */
  async parents(errand: Errand, name: WireName): Promise<{ zone: WireName; said: (Said | Failure)[]; hosts: WireName[] } | Failure> {
    const question = { name, type: typeNumbers.NS };
    let servers = this.start(errand, name, { cached: parentOf(name), heard: parentOf(name) });
    for (let depth = 0; depth < depthMax; depth++) {
      const first = await this.askZone(errand, servers, question);
      if (typeof first === 'string') return first;
      if (first.reply.kind !== 'referral' || first.reply.referral.zone === name) return this.askParents(errand, servers, question);
      servers = this.remember(errand, first.reply.referral);
    }
    return 'servfail';
  }

  /** Addresses of a name server; none when it needs itself, has none, or the errand has nothing left to spend. */
  async addressesOf(errand: Errand, host: WireName): Promise<readonly string[]> {
    const known = errand.addresses.get(host);
    if (known || errand.isSpent || errand.addresses.size >= lookUpsMax) return known ?? [];
    errand.addresses.set(host, []);
    for (const type of [typeNumbers.A, typeNumbers.AAAA]) {
      const said = await this.final(errand, { name: host, type }, host);
      if (typeof said === 'string' || said.reply.kind !== 'answer') continue;
      const addresses = said.reply.records.filter((record) => record.type === 'A' || record.type === 'AAAA').map(({ value }) => value);
      errand.addresses.set(host, addresses);
      return addresses;
    }
    return [];
  }

  /** One server, asked for `name`; null when it gave no valid answer or may not be asked. */
  async askAddress(errand: Errand, address: string, question: Question, how: { tcp: boolean; tries: number; port?: number }): Promise<WireMessage | null> {
    const route = routeTo(address, textName(question.name), this.options);
    if (!route || (how.port !== undefined && how.port !== route.port)) return null;
    const timeoutMs = Math.max(1, Math.min(this.options.timeoutMs, errand.leftMs));
    return exchange(route, question, { timeoutMs, tries: how.tries, tcp: how.tcp, spend: () => errand.spend() });
  }

  /** The first believable answer of a zone's servers: each is asked once, those that kept silent once more. */
  private async askZone(errand: Errand, servers: Servers, question: Question): Promise<Said | Failure> {
    const failures = new Set<Failure>();
    const silent: string[] = [];
    let asked = 0;
    for await (const address of this.addressesIn(errand, servers)) {
      if (asked++ >= addressesMax) break;
      const said = await this.askOnce(errand, { address, servers }, question);
      if (typeof said === 'object') return said;
      failures.add(said);
      if (said === 'timeout') silent.push(address);
    }
    for (const address of silent) {
      const said = await this.askOnce(errand, { address, servers }, question);
      if (typeof said === 'object') return said;
      failures.add(said);
    }
    return failures.has('servfail') ? 'servfail' : failures.has('refused') ? 'refused' : 'timeout';
  }

  private async askOnce(errand: Errand, { address, servers }: { address: string; servers: Servers }, question: Question): Promise<Said | Failure> {
    const message = await this.askAddress(errand, address, question, { tcp: false, tries: 1 });
    if (!message) return 'timeout';
    const reply = readReply(message, question, servers.zone);
    if (reply.kind === 'lame' || reply.kind === 'servfail') return 'servfail';
    return reply.kind === 'refused' ? 'refused' : { reply, servers, address };
  }

  private async askParents(errand: Errand, servers: Servers, question: Question): Promise<{ zone: WireName; said: (Said | Failure)[]; hosts: WireName[] }> {
    const chosen: { host: WireName; address: string }[] = [];
    for (const host of shuffled(servers.hosts)) {
      if (chosen.length >= parentServersMax) break;
      const addresses = host.addresses.length > 0 ? host.addresses : await this.addressesOf(errand, host.name);
      const address = addresses.find((one) => routeTo(one, textName(question.name), this.options) && chosen.every((other) => other.address !== one));
      if (address) chosen.push({ host: host.name, address });
    }
    const said = await Promise.all(chosen.map(async ({ address }) => {
      const once = await this.askOnce(errand, { address, servers }, question);
      return once === 'timeout' ? this.askOnce(errand, { address, servers }, question) : once;
    }));
    return { zone: servers.zone, said, hosts: chosen.map(({ host }) => host) };
  }

  /** Addresses that came with the referral first, then those that have to be looked up. */
  private async *addressesIn(errand: Errand, servers: Servers): AsyncGenerator<string> {
    const mayGo = (address: string): boolean => routeTo(address, textName(servers.zone), this.options) !== null;
    const hosts = shuffled(servers.hosts);
    for (const { addresses } of hosts) yield* addresses.filter(mayGo);
    for (const { name } of hosts.filter(({ addresses }) => addresses.length === 0)) yield* (await this.addressesOf(errand, name)).filter(mayGo);
  }

  private start(errand: Errand, name: WireName, trusted: { cached: WireName; heard: WireName }): Servers {
    const cached = closestServers((zone) => this.referrals.get(zone)?.value, trusted.cached);
    const heard = closestServers((zone) => errand.heard.referrals.get(zone), trusted.heard);
    const known = heard && heard.zone.length > (cached?.zone.length ?? 0) ? heard : cached;
    const stub = stubOf(textName(name), this.options.stubs);
    if (!stub) return known ?? serversOf(root, this.options.rootHints);
    const top = wireName(stub.suffix);
    return known && known.zone.length > top.length ? known : serversOf(top, stub.servers);
  }

  private remember(errand: Errand, { zone, ttl, hosts }: Referral): Servers {
    const servers = { zone, hosts };
    errand.heard.referrals.set(zone, servers);
    this.referrals.put(zone, servers, Math.min(ttl, referralSecondsMax));
    return servers;
  }
}

function serversOf(zone: WireName, servers: readonly NameServer[]): Servers {
  return { zone, hosts: servers.map(({ name, address }) => ({ name: wireName(name), addresses: [address] })) };
}

/** Load is spread and nobody can know who is asked first. */
function shuffled<T>(items: readonly T[]): T[] {
  return items.map((item) => ({ item, at: Math.random() })).sort((a, b) => a.at - b.at).map(({ item }) => item);
}
