import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { readFileIfAny, replaceFile } from '../../core/files';
import type { Log } from '../../core/log';
import type { Secrets } from '../../core/secrets';
import { policySchema } from '../../gateway/schemas';
import type { ZoneFacts, ZoneTable } from './zone-table';

const everyMs = 60_000;
const sealedAs = 'gateway-snapshot';
const originSchema = z.object({
  recordId: z.string(), kind: z.enum(['A', 'AAAA', 'CNAME']), value: z.string(), protocol: z.enum(['http', 'https']), port: z.int().nullable(), path: z.string().nullable(), hostHeader: z.string().nullable(),
});
const snapshotSchema = z.object({
  format: z.literal(1),
  zones: z.array(z.object({
    zoneId: z.string(), domain: z.string(), dnsVersion: z.int(), policyVersion: z.int(), policy: policySchema.nullable(),
    routes: z.array(z.object({ hostname: z.string(), wildcard: z.boolean(), hiddenBy: z.array(z.string()), origins: z.array(originSchema) })),
    certificates: z.array(z.object({ id: z.string(), hostnames: z.array(z.string()), chainPem: z.string(), sealedKey: z.string(), notAfterMs: z.number() })),
  })),
});

/** Zones of the last run; null when there is no such file, or it cannot be used, which is said. */
export async function readSnapshot(path: string, secrets: Secrets, log: Log): Promise<ZoneFacts[] | null> {
  try {
    const sealed = await readFileIfAny(path);
    return sealed === null ? null : snapshotSchema.parse(JSON.parse(secrets.open(sealed, sealedAs))).zones;
  } catch (error) {
    log.error({ err: error, path }, 'the snapshot of the gateway cannot be used');
    return null;
  }
}

/** Keeps a sealed file as the zones are: written beside it and moved into its place, every 60 s when something has changed, and at the end. */
export class SnapshotWriter {
  private readonly timer: NodeJS.Timeout;
  private written = -1;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly path: string, private readonly zones: ZoneTable, private readonly secrets: Secrets, private readonly log: Log) {
    this.timer = setInterval(() => void this.write(), everyMs);
    this.timer.unref();
  }

  /** Resolves when the file holds what is served now, or a warning says why not. */
  write(): Promise<void> {
    this.writing = this.writing.then(() => (this.zones.changes === this.written ? undefined : this.replace()))
      .catch((error: unknown) => this.log.warn({ err: error, path: this.path }, 'the snapshot of the gateway could not be written'));
    return this.writing;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  private async replace(): Promise<void> {
    const { changes } = this.zones;
    const zones = [...this.zones.all()].map(({ facts }) => facts);
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    await replaceFile(this.path, this.secrets.seal(JSON.stringify({ format: 1, zones }), sealedAs));
    this.written = changes;
  }
}
