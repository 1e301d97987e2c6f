import type { OriginAccess } from './origin-access';

/** A proxied record: where the visitors of a name are led. */
export type OriginRecord = {
  recordId: string; kind: 'A' | 'AAAA' | 'CNAME'; value: string;
  protocol: 'http' | 'https'; port: number | null; path: string | null; hostHeader: string | null;
};

/** One address to connect to, checked. */
export type Target = {
  /** Of its connections: never shared between zones, so that no origin's answer reaches another zone's visitor. */
  readonly poolKey: string;
  readonly address: string; readonly port: number; readonly record: OriginRecord;
};

export type Picked = { target: Target } | { fault: 'unresolved' | 'refused' };

/** The origins of one name, taken in turn; addresses that could not be connected to rest. */
export class OriginPool {
  private turn = 0;
  private known: { targets: readonly Target[]; until: number; fault: 'unresolved' | 'refused' } | null = null;

  constructor(private readonly zoneId: string, private readonly records: readonly OriginRecord[]) {}

  /** The next address, not one of `tried` while there is another. At once when every name is known. */
  pick(access: OriginAccess, tried: Target | null, nowMs: number): Picked | Promise<Picked> {
    if (this.known && this.known.until > nowMs) return this.choose(this.known, access, tried);
    return this.resolve(access, nowMs).then((known) => this.choose(known, access, tried));
  }

  /** Whether there is an address besides this one, as far as is known. */
  hasOther({ address, port }: Target): boolean {
    return this.known?.targets.some((other) => other.address !== address || other.port !== port) ?? false;
  }

  private choose({ targets, fault }: NonNullable<OriginPool['known']>, access: OriginAccess, tried: Target | null): Picked {
    const first = this.turn++;
    let best: Target | null = null;
    let restsUntil = Infinity;
    for (let i = 0; i < targets.length; i++) {
      const target = targets[(first + i) % targets.length];
      if (!target || (tried && targets.length > 1 && target.address === tried.address && target.port === tried.port)) continue;
      const until = access.resting.until(target);
      if (until === 0) return { target };
      if (until < restsUntil) [best, restsUntil] = [target, until];
    }
    return best ? { target: best } : { fault };
  }

  /** Every address is checked here, and what is checked here is what is dialled. */
  private async resolve(access: OriginAccess, nowMs: number): Promise<NonNullable<OriginPool['known']>> {
    const found = await Promise.all(this.records.map(async (record) => {
      if (record.kind !== 'CNAME') return { record, addresses: [record.value], until: Infinity };
      return { record, ...(await access.names.resolve(record.value, nowMs)) };
    }));
    const all = found.flatMap(({ record, addresses }) => addresses.map((address): Target => {
      const port = record.port ?? (record.protocol === 'https' ? 443 : 80);
      return { poolKey: `${this.zoneId} ${record.recordId} ${address} ${port}`, address, port, record };
    }));
    const targets = all.filter(({ address, port }) => access.mayDial(address, port));
    const until = Math.min(nowMs + checkedForMs, ...found.map((one) => one.until));
    this.known = { targets, until, fault: all.length > 0 ? 'refused' : 'unresolved' };
    return this.known;
  }
}

/** What we listen on may change; an address is checked again after this long at the latest. */
const checkedForMs = 60_000;
