/** Who needs an instance running. A lease belongs to the connection it was asked over and ends with it. */
export class Leases {
  private readonly holders = new Map<string, Set<AbortSignal>>();
  private readonly lastUse = new Map<string, number>();
  private readonly known = new WeakSet<AbortSignal>();

  /** Safe twice: one holder has one lease per service. */
  hold(serviceId: string, holder: AbortSignal): void {
    this.touch(serviceId);
    if (holder.aborted) return;
    const holders = this.holders.get(serviceId) ?? new Set();
    this.holders.set(serviceId, holders.add(holder));
    if (this.known.has(holder)) return;
    this.known.add(holder);
    holder.addEventListener('abort', () => {
      for (const held of [...this.holders.keys()]) this.release(held, holder);
    }, { once: true });
  }

  release(serviceId: string, holder: AbortSignal): void {
    const holders = this.holders.get(serviceId);
    if (!holders?.delete(holder)) return;
    this.touch(serviceId);
    if (holders.size === 0) this.holders.delete(serviceId);
  }

  held(serviceId: string): boolean {
    return this.holders.has(serviceId);
  }

  /** The service is in use now. */
  touch(serviceId: string): void {
    this.lastUse.set(serviceId, performance.now());
  }

  /** Milliseconds since anybody used it; a service nobody has spoken of begins to rest now. */
  restedMs(serviceId: string): number {
    const last = this.lastUse.get(serviceId);
    if (last === undefined) this.touch(serviceId);
    return this.held(serviceId) || last === undefined ? 0 : performance.now() - last;
  }

  forget(serviceId: string): void {
    this.holders.delete(serviceId);
    this.lastUse.delete(serviceId);
  }
}
