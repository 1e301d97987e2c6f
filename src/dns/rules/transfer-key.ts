import { createHmac } from 'node:crypto';
import type { TsigKey } from './wire/tsig';
import { wireName } from './wire/name';

/**
 * The keys the platform reads its own zones with, one per master key, made from it: nothing is configured or stored, and both
 * sides know them. The first signs; servers take all, so the master key can be rotated.
 */
export function platformTransferKeys(masterKeys: readonly string[]): TsigKey[] {
  return masterKeys.map((text) => {
    const from = (label: string): Buffer => createHmac('sha256', Buffer.from(text, 'base64')).update(label).digest();
    return { name: wireName(`holdfast-${from('holdfast dns transfer key name').toString('hex', 0, 4)}`), secret: from('holdfast dns transfer key') };
  });
}
