import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { captureMailer, smtpMailer } from '../../src/adapters/mail-transport/account-mailers';
import { AppError } from '../../src/core/errors';
import type { AccountMailer } from '../../src/identity/ports';

const message = { id: 'msg_01kahq3v7ye5fr2m8d4xw0zt6c', to: 'ann@acme.test', subject: 'Invitation to Ünïcode', text: 'Open:\n\nhttps://h.test/accept-invitation?token=abc_DEF-123\n' };
const from = 'Holdfast <accounts@h.test>';

type Sink = { mails: () => Promise<string[]>; close: () => Promise<void> };
const adapters: [string, () => Promise<{ mailer: AccountMailer; sink: Sink }>][] = [
  ['capture', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'holdfast-mail-'));
    const read = async () => Promise.all((await readdir(directory)).map((name) => readFile(join(directory, name), 'utf8')));
    return { mailer: captureMailer(directory, from), sink: { mails: read, close: () => rm(directory, { recursive: true }) } };
  }],
  ['smtp', async () => {
    const relay = await startRelay({});
    return { mailer: smtpMailer(relay.url, from), sink: { mails: async () => [...new Set(relay.mails)], close: relay.close } };
  }],
];

test.each(adapters)('%s: one mail leaves with the Message-ID of its row, twice the same is one', async (_, open) => {
  const { mailer, sink } = await open();
  try {
    await mailer.send(message);
    await mailer.send(message);
    const ids = (await sink.mails()).map((mail) => /^Message-ID: (.+)$/im.exec(mail)?.[1]?.trim());
    expect(new Set(ids)).toEqual(new Set([`<${message.id}@h.test>`]));
    const [mail = ''] = await sink.mails();
    expect(mail).toMatch(/^To: ann@acme\.test\r?$/m);
    expect(mail).toContain('accept-invitation?token');
  } finally {
    await sink.close();
  }
});

test('a captured mail is for the installation’s user alone', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-mail-'));
  await captureMailer(directory, from).send(message);
  expect((await stat(join(directory, `${message.id}.eml`))).mode & 0o777).toBe(0o600);
  await rm(directory, { recursive: true });
});

test.each([['550 no such user', true], ['451 try later', false]])('a relay that says %p: final is %p', async (answer, final) => {
  const relay = await startRelay({ rcpt: answer });
  try {
    const error: unknown = await smtpMailer(relay.url, from).send(message).then(() => null, (refusal: unknown) => refusal);
    expect(error).toBeInstanceOf(Error);
    expect(error instanceof AppError).toBe(final);
  } finally {
    await relay.close();
  }
});

/** As little SMTP as a client needs. */
async function startRelay({ rcpt = '250 ok' }: { rcpt?: string }): Promise<{ url: string; mails: string[]; close: () => Promise<void> }> {
  const mails: string[] = [];
  const server: Server = createServer((socket) => serve(socket, mails, rcpt));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `smtp://127.0.0.1:${port}`, mails, close: () => new Promise((done) => server.close(() => done())) };
}

function serve(socket: Socket, mails: string[], rcpt: string): void {
  let data: string | null = null;
  let rest = '';
  const say = (line: string) => socket.write(`${line}\r\n`);
  say('220 relay');
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    const lines = (rest + chunk.toString()).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (data !== null) {
        if (line !== '.') data += `${line}\n`;
        else {
          mails.push(data.replace(/^Date: .*$/m, '').replace(/boundary="[^"]*"/g, ''));
          data = null;
          say('250 taken');
        }
      } else if (/^EHLO|^HELO/i.test(line)) say('250 relay');
      else if (/^RCPT/i.test(line)) say(rcpt);
      else if (/^DATA/i.test(line)) {
        data = '';
        say('354 go');
      } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n');
      else say('250 ok');
    }
  });
}
