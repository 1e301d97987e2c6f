import { randomInt } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimFile } from './claims';

/**
 * A port that nobody used a moment ago, below the range from which the kernel takes local ports of outgoing connections
 * (32768 and up on Linux): one from there may be gone before a server listens on it.
 */
export async function anyFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = randomInt(22_000, 32_000);
    if (await freeOnAll(port, ['127.0.0.1', '0.0.0.0'])) return port;
  }
  throw new Error('No free port between 22000 and 32000.');
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
  return listens(host, 0);
}

async function freeOnAll(port: number, hosts: readonly string[]): Promise<boolean> {
  for (const host of hosts) {
    if (!(await listens(host, port))) return false;
  }
  return true;
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false)).listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
