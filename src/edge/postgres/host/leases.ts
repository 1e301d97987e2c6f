/** Who needs an instance running. A lease belongs to the connection it was asked over and ends with it. */
export class Leases {
  private readonly holders = new Map<string, Set<AbortSignal>>();
  private readonly lastUse = new Map<string, number>();

  /** Safe twice: one holder has one lease per service. */
  hold(serviceId: string, holder: AbortSignal): void {
    const holders = this.holders.get(serviceId) ?? new Set();
    this.holders.set(serviceId, holders);
    this.lastUse.set(serviceId, performance.now());
    if (holders.has(holder)) return;
    holders.add(holder);
    holder.addEventListener('abort', () => this.release(serviceId, holder), { once: true });
    if (holder.aborted) this.release(serviceId, holder);
  }

  release(serviceId: string, holder: AbortSignal): void {
    const holders = this.holders.get(serviceId);
    if (!holders?.delete(holder)) return;
    this.lastUse.set(serviceId, performance.now());
    if (holders.size === 0) this.holders.delete(serviceId);
  }

  held(serviceId: string): boolean {
    return this.holders.has(serviceId);
  }

  /** The service was used in another way than by a lease. */
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
