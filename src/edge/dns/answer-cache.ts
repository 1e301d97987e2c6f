import type { LoadedZone } from './zone-store';

/** A whole answer, to be sent again under another id and another spelling of the same question. */
export type CachedAnswer = { octets: Buffer; zone: LoadedZone; epoch: number; limitKey: string };

const entriesMax = 100_000;

/**
 * Answers by EDNS class and type, then by name. Two generations: what is asked for again moves to the young one, and when
 * that is full the old one is forgotten, so a flood of names that do not exist cannot grow it and hardly hurts it. An
 * answer counts while its zone's epoch is the one it was made in.
 */
export class AnswerCache {
  private young = new Map<number, Map<string, CachedAnswer>>();
  private old = new Map<number, Map<string, CachedAnswer>>();
  private youngSize = 0;

  get(kind: number, name: string): CachedAnswer | undefined {
    const fresh = this.young.get(kind)?.get(name);
    if (fresh) return fresh.epoch === fresh.zone.epoch ? fresh : undefined;
    const aged = this.old.get(kind)?.get(name);
    if (!aged || aged.epoch !== aged.zone.epoch) return undefined;
    this.put(kind, name, aged);
    return aged;
  }

  put(kind: number, name: string, answer: CachedAnswer): void {
    if (this.youngSize >= entriesMax / 2) {
      this.old = this.young;
      this.young = new Map();
      this.youngSize = 0;
    }
    const names = this.young.get(kind) ?? new Map<string, CachedAnswer>();
    this.young.set(kind, names);
    if (!names.has(name)) this.youngSize++;
    names.set(name, answer);
  }
}
