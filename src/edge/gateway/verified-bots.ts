import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Log } from '../../core/log';
import { AddressSet, parseAddress } from './address-set';

/**
 * Robots the operator vouches for, by address and never by name: one address or network a line, anything after it and after
 * `#` is for people. Read again when the file changes; a file with a fault changes nothing.
 */
export class VerifiedBots {
  private addresses = new AddressSet([]);

  private constructor(private readonly path: string | undefined, private readonly log: Log) {}

  /** Without a path nobody is verified. Errors: a file that cannot be read, a line that is no address. */
  static async open(path: string | undefined, log: Log, pollMs = 5_000): Promise<VerifiedBots> {
    const bots = new VerifiedBots(path, log);
    if (path === undefined) return bots;
    await bots.load(path);
    watchFile(path, { persistent: false, interval: pollMs }, () => {
      bots.load(path).catch((error: unknown) => log.error({ err: error, path }, 'the file of verified bots cannot be used; the last good one stays'));
    });
    return bots;
  }

  has(ip: string): boolean {
    return !this.addresses.isEmpty && this.addresses.has(parseAddress(ip));
  }

  close(): void {
    if (this.path !== undefined) unwatchFile(this.path);
  }

  private async load(path: string): Promise<void> {
    const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.replace(/#.*/, '').trim().split(/\s+/)[0] ?? '');
    this.addresses = new AddressSet(lines.filter(Boolean));
    this.log.info({ path, lines: lines.length }, 'verified bots loaded');
  }
}
