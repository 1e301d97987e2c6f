import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../core/errors';
import type { AccountMailer, AccountMailMessage } from '../../identity/ports';

const deadlineMs = 20_000;

/** One file per mail, `<directory>/<id>.eml`, for the developer to read; the same mail again is the same file. */
export function captureMailer(directory: string, from: string): AccountMailer {
  const builder = later(async () => (await import('nodemailer')).createTransport({ streamTransport: true, buffer: true, newline: 'unix' }));
  return {
    async send(message) {
      const built: unknown = await (await builder()).sendMail(fields(message, from));
      const bytes = typeof built === 'object' && built !== null && 'message' in built ? built.message : null;
      if (!Buffer.isBuffer(bytes)) throw new Error('The mail was not built.');
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const file = join(directory, `${message.id}.eml`);
      await writeFile(`${file}.part`, bytes, { mode: 0o600 });
      await rename(`${file}.part`, file);
    },
  };
}

/** Through the relay at `url`, within 20 s. Errors: `backend_error` when it refuses for good (5xx). */
export function smtpMailer(url: string, from: string): AccountMailer {
  const timeouts = { connectionTimeout: deadlineMs, greetingTimeout: deadlineMs, socketTimeout: deadlineMs, dnsTimeout: deadlineMs };
  const relay = later(async () => (await import('nodemailer')).createTransport({ url, ...timeouts }));
  return {
    async send(message) {
      try {
        await (await relay()).sendMail(fields(message, from));
      } catch (error) {
        if (isFinal(error)) throw new AppError('backend_error', 'The mail relay refuses this mail for good.', {}, { cause: error });
        throw error;
      }
    },
  };
}

/** The recipient is an address, never parsed as a list; nothing of a customer's reaches names, envelopes or paths. */
function fields({ id, to, subject, text }: AccountMailMessage, from: string) {
  const domain = /@([^\s>]+)/.exec(from)?.[1] ?? 'localhost';
  return { from, to: { name: '', address: to }, subject, text, messageId: `<${id}@${domain}>`, disableFileAccess: true, disableUrlAccess: true };
}

function isFinal(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'responseCode' in error && typeof error.responseCode === 'number' && error.responseCode >= 500;
}

type Sender = { sendMail(mail: ReturnType<typeof fields>): Promise<unknown> };

/** Made when the first mail is sent: loading it costs every start otherwise. */
function later(make: () => Promise<Sender>): () => Promise<Sender> {
  let made: Promise<Sender> | undefined;
  return () => (made ??= make());
}
