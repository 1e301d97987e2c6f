import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import * as dnsPacket from 'dns-packet';
import { framed } from './dns-client';

export type Query = { id: number; name: string; type: string; octets: Buffer; tcp: boolean };
/** Messages to send back; none: silence. */
export type Behaviour = (query: Query) => (Partial<dnsPacket.Packet> | Buffer)[];

/** A name server that says whatever a test wants, and remembers what it was asked. */
export class HostileServer {
  readonly asked: Query[] = [];

  private constructor(readonly address: string, private readonly udp: Socket, private readonly tcp: Server) {}

  static async start(at: { address: string; port: number }, behave: Behaviour): Promise<HostileServer> {
    const udp = createSocket('udp4');
    const tcp = createServer();
    const server = new HostileServer(at.address, udp, tcp);
    udp.on('message', (octets: Buffer, from: RemoteInfo) => {
      for (const answer of server.answers(octets, false, behave)) udp.send(answer, from.port, from.address);
    });
    tcp.on('connection', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        for (const answer of server.answers(chunk.subarray(2), true, behave)) socket.write(framed(answer));
      });
    });
    await new Promise<void>((resolve) => udp.bind(at.port, at.address, resolve));
    await new Promise<void>((resolve) => tcp.listen(at.port, at.address, resolve));
    return server;
  }

  close(): void {
    this.udp.close();
    this.tcp.close();
  }

  private answers(octets: Buffer, tcp: boolean, behave: Behaviour): Buffer[] {
    const packet = dnsPacket.decode(octets);
    const [question] = packet.questions ?? [];
    const query = { id: packet.id ?? 0, name: question?.name ?? '', type: question?.type ?? '', octets, tcp };
    this.asked.push(query);
    return behave(query).map((answer) => (Buffer.isBuffer(answer) ? answer : dnsPacket.encode({ type: 'response', id: query.id, questions: packet.questions ?? [], ...answer })));
  }
}

export const aa = dnsPacket.AUTHORITATIVE_ANSWER;
export const tc = dnsPacket.TRUNCATED_RESPONSE;

/** A referral: `zone` is served by these hosts, with glue for those that have an address. */
export function referral(zone: string, hosts: Readonly<Record<string, string | null>>): Partial<dnsPacket.Packet> {
  return {
    authorities: Object.keys(hosts).map((host) => ({ type: 'NS', name: zone, ttl: 300, data: host })),
    additionals: Object.entries(hosts).flatMap(([host, address]) => (address === null ? [] : [{ type: 'A' as const, name: host, ttl: 300, data: address }])),
  };
}

export function address(name: string, value: string): dnsPacket.Answer {
  return { type: 'A', name, ttl: 300, data: value };
}
