import { chmod, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimFile } from './claims';

/** A port of the kernel's choice that nobody used a moment ago. */
export function anyFreePort(): Promise<number> {
  return listenOnce('127.0.0.1', 0);
}

/**
 * Ports for one installation: the wanted one, or the next that is free on every host asked for. A claim is a file that names
 * this process, so two installations starting at the same moment never choose the same port before either listens on it.
 */
export class PortClaims {
  private readonly releases: (() => Promise<void>)[] = [];

  constructor(private readonly dir = join(tmpdir(), 'holdfast-ports')) {}

  async claim(wanted: number, hosts: readonly string[] = ['127.0.0.1']): Promise<number> {
    for (let port = wanted; port < Math.min(wanted + 400, 65_536); port += 1) {
      if ((await this.reserve(port)) && (await freeOnAll(port, hosts))) return port;
    }
    throw new Error(`No free port from ${wanted} up.`);
  }

  async release(): Promise<void> {
    for (const release of this.releases.splice(0)) await release();
  }

  private async reserve(port: number): Promise<boolean> {
    // Every user's installations meet here, so the folder is open like the one it is in.
    if ((await mkdir(this.dir, { recursive: true })) !== undefined) await chmod(this.dir, 0o1777);
    const claim = await claimFile(join(this.dir, String(port)));
    if (claim.claimed) this.releases.push(claim.release);
    return claim.claimed;
  }
}

/** Whether this machine has the address at all, e.g. ::1. */
export async function canListen(host: string): Promise<boolean> {
  return listenOnce(host, 0).then(() => true, () => false);
}

async function freeOnAll(port: number, hosts: readonly string[]): Promise<boolean> {
  for (const host of hosts) {
    if (!(await listenOnce(host, port).then(() => true, () => false))) return false;
  }
  return true;
}

function listenOnce(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject).listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => (address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no address'))));
    });
  });
}
