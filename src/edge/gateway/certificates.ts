import { createSecureContext, type SecureContext } from 'node:tls';
import type { Log } from '../../core/log';
import type { Secrets } from '../../core/secrets';
import type { StoredCertificate, ZoneTable } from './zone-table';

const contextsMax = 2_000;

/** Certificates by the name a client asks for: of the zone that serves the name now, never of another that once did. */
export class CertificateStore {
  private readonly contexts = new Map<string, { chainPem: string; context: SecureContext }>();

  constructor(private readonly zones: ZoneTable, private readonly secrets: Secrets, private readonly log: Log) {}

  /** Null: nobody is served there, or there is no certificate yet. */
  contextFor(serverName: string): SecureContext | null {
    const name = serverName.toLowerCase();
    const zone = this.zones.find(name)?.zone;
    const certificate = zone && best(zone.facts.certificates, name);
    if (!certificate) return null;
    const kept = this.contexts.get(certificate.id);
    this.contexts.delete(certificate.id);
    const made = kept?.chainPem === certificate.chainPem ? kept : this.open(certificate);
    if (!made) return null;
    this.contexts.set(certificate.id, made);
    if (this.contexts.size > contextsMax) for (const [oldest] of this.contexts) return this.drop(oldest, made.context);
    return made.context;
  }

  private drop(oldest: string, context: SecureContext): SecureContext {
    this.contexts.delete(oldest);
    return context;
  }

  private open({ id, chainPem, sealedKey }: StoredCertificate): { chainPem: string; context: SecureContext } | null {
    try {
      return { chainPem, context: createSecureContext({ cert: chainPem, key: this.secrets.open(sealedKey, `certificate:${id}`), minVersion: 'TLSv1.2' }) };
    } catch (error) {
      this.log.error({ err: error, certificateId: id }, 'a certificate cannot be used');
      return null;
    }
  }
}

/** One that names the host itself before a wildcard, the one that lasts longest first (RFC 6125 §6.4.3: one label). */
function best(certificates: readonly StoredCertificate[], name: string): StoredCertificate | null {
  const wildcard = `*.${name.slice(name.indexOf('.') + 1)}`;
  const lasting = [...certificates].sort((a, b) => b.notAfterMs - a.notAfterMs);
  return lasting.find(({ hostnames }) => hostnames.includes(name)) ?? lasting.find(({ hostnames }) => hostnames.includes(wildcard)) ?? null;
}
