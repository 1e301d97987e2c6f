import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import { isGoodLeaf, issueLeaf, type KeyedCertificate, type LeafNames } from '../../../core/certificates';
import { readFileIfAny, replaceFile } from '../../../core/files';
import type { Log } from '../../../core/log';

export type CertificateSource = {
  /** Where the installation's own leaf and ca.pem are kept. */
  directory: string;
  names: LeafNames;
  /** The operator's certificate; null: the installation's own authority signs a leaf. */
  files: { certificate: string; key: string } | null;
  authority: () => Promise<KeyedCertificate>;
};

/** An operator who replaces his files looks at once whether it worked; our own leaf changes by time alone. */
const checkMs = { files: 2_000, own: 60_000 };

/** What the gateway shows in TLS, replaced while connections go on. */
export class ServedCertificate {
  private readonly timer: NodeJS.Timeout;

  private constructor(private readonly source: CertificateSource, private readonly log: Log, private shown: KeyedCertificate, private current: SecureContext) {
    this.timer = setInterval(() => void this.check(), source.files ? checkMs.files : checkMs.own).unref();
  }

  /** Errors: the operator's files cannot be read or do not fit; no leaf on disk and no database. */
  static async open(source: CertificateSource, log: Log): Promise<ServedCertificate> {
    const shown = await readCertificate(source);
    return new ServedCertificate(source, log, shown, contextOf(shown));
  }

  get context(): SecureContext { return this.current; }

  stop(): void {
    clearInterval(this.timer);
  }

  private async check(): Promise<void> {
    try {
      const found = await readCertificate(this.source);
      if (found.certificate === this.shown.certificate && found.key === this.shown.key) return;
      this.current = contextOf(found);
      this.shown = found;
      this.log.info('the Postgres gateway shows a new certificate');
    } catch (error) {
      this.log.error({ err: error }, 'the certificate of the Postgres gateway could not be read; the former one stays');
    }
  }
}

function contextOf({ certificate, key }: KeyedCertificate): SecureContext {
  return createSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' });
}

/**
 * The installation's leaf is made again when less than 30 days are left or a name is missing; with a good leaf on disk the
 * gateway starts while the database is away.
 */
async function readCertificate(source: CertificateSource): Promise<KeyedCertificate> {
  if (!source.files) return ownLeaf(source);
  return { certificate: await readFile(source.files.certificate, 'utf8'), key: await readFile(source.files.key, 'utf8') };
}

async function ownLeaf({ directory, names, authority }: CertificateSource): Promise<KeyedCertificate> {
  const [leafFile, keyFile, authorityFile] = [join(directory, 'gateway.pem'), join(directory, 'gateway.key'), join(directory, 'ca.pem')];
  await mkdir(dirname(directory), { recursive: true });
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const [certificate, key, kept] = await Promise.all([readFileIfAny(leafFile), readFileIfAny(keyFile), readFileIfAny(authorityFile)]);
  const current = await authority().catch((error: unknown) => {
    if (certificate && key && kept) return null;
    throw error;
  });
  const good = certificate && key && kept && (!current || current.certificate === kept) && isGoodLeaf({ certificate, key }, kept, names);
  if (good || !current) return { certificate: certificate ?? '', key: key ?? '' };
  const leaf = issueLeaf(current, names);
  await replaceFile(authorityFile, current.certificate, 0o644);
  await replaceFile(keyFile, leaf.key, 0o600);
  await replaceFile(leafFile, leaf.certificate, 0o644);
  return leaf;
}
