import { Agent, type ClientRequest } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type SecureContext } from 'node:tls';
import type { Target } from './origin-pool';

const connectMs = 5_000;
/** Shorter than what common servers keep an idle connection for (5 s), so that few requests meet a closing one. */
const idleMs = 4_000;

/** Where a request goes: part of its options, so that the agent can dial it. */
export type Dial = { readonly target: Target; /** Of the TLS handshake; empty for an address. */ readonly serverName: string };

/**
 * Connections to origins, kept while they rest. Each is dialled to the address that was checked; there is no look-up after the
 * check. Origins with TLS are verified, against the system's authorities unless `trust` names others.
 */
export class OriginAgent extends Agent {
  private readonly established = new WeakSet<Duplex>();

  constructor(private readonly trust?: SecureContext) {
    // The timeout is that of resting connections: Node shortens it to what the origin announces, less a second.
    super({ keepAlive: true, maxFreeSockets: 128, timeout: idleMs });
  }

  override getName(options: object = {}): string {
    const dial = dialOf(options);
    return `${dial.target.poolKey} ${dial.serverName}`;
  }

  /** Whether a connection has come about: what fails before has reached nobody. */
  isEstablished({ socket }: ClientRequest): boolean {
    return socket !== null && this.established.has(socket);
  }

  override createConnection(options: object): Duplex {
    const { target: { address: host, port, record: { protocol } }, serverName } = dialOf(options);
    const isTls = protocol === 'https';
    const socket: Socket = isTls
      ? connectTls({ host, port, servername: serverName, ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2', ...(this.trust && { secureContext: this.trust }) })
      : connectTcp({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
    const late = setTimeout(() => socket.destroy(Object.assign(new Error('The origin was not connected to in time.'), { code: 'ETIMEDOUT' })), connectMs);
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(late);
      this.established.add(socket);
    });
    socket.once('close', () => clearTimeout(late));
    return socket;
  }
}

function dialOf(options: object): Dial {
  if ('dial' in options && isDial(options.dial)) return options.dial;
  throw new Error('A request to an origin says where it goes.');
}

function isDial(value: unknown): value is Dial {
  return typeof value === 'object' && value !== null && 'target' in value && 'serverName' in value;
}
