import { createPrivateKey } from 'node:crypto';
import type { Secrets } from '../../core/secrets';
import type { Database } from '../../db/client';
import type { DkimKey } from '../rules/dkim';
import { openSigningKey } from '../signing-keys';
import { readSealedKey } from '../store/claim';

const keptMax = 1_000;

/**
 * Key pairs by domain and selector, opened once per process: a selector's key never changes. Null for one that is gone
 * with its domain; that is asked again.
 */
export function createSigningKeys({ db, secrets }: { db: Database; secrets: Secrets }): (domainId: string, selector: string) => Promise<DkimKey | null> {
  const kept = new Map<string, DkimKey>();
  return async (domainId, selector) => {
    const name = `${domainId} ${selector}`;
    const known = kept.get(name);
    if (known) return known;
    const found = await readSealedKey(db.prisma, domainId, selector);
    if (!found) return null;
    const key = { domain: found.domain, selector, privateKey: createPrivateKey(openSigningKey(secrets, domainId, { selector, sealed: found.sealed })) };
    if (kept.size >= keptMax) kept.clear();
    kept.set(name, key);
    return key;
  };
}
