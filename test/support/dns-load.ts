import { createSocket } from 'node:dgram';
import type { At } from './dns-client';
import { queryFor } from './dns-client';

export type LoadReport = { asked: number; answered: number; wrong: number };

/** Asks the same question `perSecond` times a second until stopped; then tells what came of it. An answer may take 2 s. `isRight` judges each. */
export function startDnsLoad(at: At, question: { name: string; type: string }, { perSecond, isRight }: { perSecond: number; isRight: (answer: Buffer) => boolean }): { stop(): Promise<LoadReport> } {
  const socket = createSocket('udp4');
  const waiting = new Set<number>();
  const report = { asked: 0, answered: 0, wrong: 0 };
  const query = queryFor(question.name, question.type, { edns: 1232 });
  socket.on('message', (answer) => {
    if (!waiting.delete(answer.readUInt16BE(0))) return;
    report.answered++;
    if (!isRight(answer)) report.wrong++;
  });
  const timer = setInterval(() => {
    for (let i = 0; i < Math.max(1, perSecond / 100); i++) {
      const octets = Buffer.from(query);
      octets.writeUInt16BE(report.asked++ & 0xffff, 0);
      waiting.add(octets.readUInt16BE(0));
      socket.send(octets, at.port, at.host);
    }
  }, 10);
  return {
    async stop() {
      clearInterval(timer);
      for (const end = performance.now() + 2_000; waiting.size > 0 && performance.now() < end;) await new Promise((done) => setTimeout(done, 10));
      socket.close();
      return report;
    },
  };
}
