import type { Id } from '../core/ids';
import type { FoundRRset } from './rules/drift';
import type { RRset, RrType } from './rules/rrset';

/**
 * A step of one zone's answers. `full` replaces all, `diff` the named RRsets, `remove` ends the zone. Platform zones (the
 * name server suffix, a registry's) have no zone id and are not counted.
 */
export type ZoneChangeSet = {
  zoneId: Id<'zone'> | null;
  domain: string;
  version: number;
  fromVersion: number | null;
  serial: number;
  kind: 'full' | 'diff' | 'remove';
  replace: RRset[];
  remove: { name: string; type: RrType }[];
};

/** What one server has of a zone; version null: it does not have the zone. `lagMs`: for how long it has been behind; null when nobody knows. */
export type ServerState = { name: string; version: number | null; serial: number | null; inSync: boolean; lagMs: number | null };

/** A zone as one server answers it. */
export type ServedZone = { server: string; serial: number; rrsets: FoundRRset[] };

/** Who answers for the zones (contract dns.md §6.1). */
export interface DnsBackend {
  /** True: it must be told of every version. False: its servers follow the database by themselves. */
  readonly pushed: boolean;
  /**
   * The backend is at the version afterwards, or says what it is at: a step that starts from a version that is not there
   * changes nothing. Twice is once; an older version is ignored. Errors: AppError when it will never be taken; any other may
   * be tried again.
   */
  applyChangeSet(changes: ZoneChangeSet): Promise<{ appliedVersion: number; servers: ServerState[] }>;
  /** What each server that can be asked answers; null: the zone is not served. Errors: none can be asked. */
  readZone(domain: string): Promise<ServedZone[] | null>;
  health(): Promise<{ ok: boolean; lagMs: number | null; detail: string }>;
}

/** What became of a change set: taken; not newer than what is there; based on a version that is not there; or impossible to answer from. */
export type ApplyOutcome = 'applied' | 'stale' | 'gap' | 'refused';

/** Where an authoritative server learns of zones (contract dns.md §6.3). */
export interface ZoneFeed {
  /**
   * Hands over every served zone as one `full` change set; resolves when all are there, and goes on with changes until `stop`. After a
   * `gap` it sends the zone in full. `settled` resolves when what was applied before is answered by all processes of the server.
   */
  start(apply: (changes: ZoneChangeSet) => ApplyOutcome, settled?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Types the resolver asks for. */
export type QueryType = RrType | 'PTR' | 'SRV' | 'NSEC' | 'DNSKEY';

/** A record found in DNS: name lower case without final dot, value as in an RRset. */
export type DnsRecord = { name: string; type: string; ttl: number; value: string };

export type Resolution = {
  outcome: 'answer' | 'nodata' | 'nxdomain' | 'servfail' | 'refused' | 'timeout';
  /** Authoritative NOERROR or NXDOMAIN from the servers responsible; all else says nothing about the name. */
  conclusive: boolean;
  canonicalName: string;
  records: DnsRecord[];
  /** Seconds. */
  ttl: number;
  zone: string | null;
  server: string | null;
  queries: number;
  durationMs: number;
};

export type ServerAnswer = Pick<Resolution, 'outcome' | 'records' | 'durationMs'> & { authoritative: boolean };

export type Delegation = Pick<Resolution, 'outcome' | 'conclusive' | 'ttl'> & {
  parentZone: string;
  parentServers: string[];
  /** Whether every parent server that answered gave the same set. */
  consistent: boolean;
  nameservers: { name: string; addresses: string[] }[];
};

/** A zone as one server transfers it: its records, each once. Anything else than the whole of it is an outcome of its own. */
export type ZoneTransfer = { outcome: 'zone'; serial: number; records: DnsRecord[] } | { outcome: 'refused' | 'servfail' | 'malformed' | 'timeout' | 'too_large' };

/** Packets that all questions of one check or scan may cost together. The resolver counts it down. */
export type QueryBudget = { queriesLeft: number };

/** Recursive questions to DNS itself. Outcomes never throw; nothing is sent to an address that `isContactable` refuses. */
export interface DnsResolver {
  resolve(name: string, type: QueryType, options?: { freshness?: 'live' | 'cached'; budgetMs?: number; budget?: QueryBudget }): Promise<Resolution>;
  /** The parent's view of a name. */
  delegation(name: string, options?: { budgetMs?: number; budget?: QueryBudget }): Promise<Delegation>;
  askServer(server: { address: string; port?: number }, name: string, type: QueryType, options?: { tcp?: boolean; budget?: QueryBudget }): Promise<ServerAnswer>;
  /** A whole zone by AXFR without a key, at most `bytesMax` within `timeoutMs`; `refused` also when the address may not be asked. Only resolvers that speak to servers have it. */
  transferZone?(server: { address: string; port?: number }, domain: string, limits: { bytesMax: number; timeoutMs: number }): Promise<ZoneTransfer>;
}

/** What the server would answer from one zone, and how it comes to it. */
export type ZoneAnswer = {
  rcode: string; aa: boolean; answer: DnsRecord[]; authority: DnsRecord[];
  /** `step`: delegation, name, wildcard, cname, answer, nodata, nxdomain. */
  trace: { name: string; step: string; detail: string }[];
};

/** The server's own look-up on a zone handed to it in full; name absolute, at or below the apex. */
export type ZoneLookup = (zone: ZoneChangeSet, name: string, type: string) => ZoneAnswer;
