import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import type { Change } from './changes';
import { recordNotice } from './notices';
import { disabledSuppressionDays, suppressedBy } from './rules/suppression';
import { countDisabled, insertSuppressions, type NewSuppression } from './store/suppress';

/** Bounces of these changes suppress their addresses for the service where contract mail.md §4.5 says so. */
export async function suppressBounced(tx: Tx, changes: readonly Change[], provider?: { permanent: boolean; subType?: string | undefined }): Promise<void> {
  const wanted: NewSuppression[] = [];
  for (const { before, after, message } of changes) {
    if (before === after || after.status !== 'bounced') continue;
    const verdict = suppressedBy({ enhancedCode: after.enhancedCode, provider });
    const days = verdict === 'second' && await countDisabled(tx, after) > 1 ? disabledSuppressionDays : null;
    if (verdict === 'always' || days !== null) wanted.push(suppressionOf(after, message.id, 'bounce', days));
  }
  await suppress(tx, wanted);
}

/** Who complains gets no more mail of the service. */
export async function suppressComplained(tx: Tx, changes: readonly Change[]): Promise<void> {
  await suppress(tx, changes.filter(({ before, after }) => before !== after && after.status === 'complained').map(({ after, message }) => suppressionOf(after, message.id, 'complaint', null)));
}

function suppressionOf(recipient: Change['after'], messageId: string, reason: 'bounce' | 'complaint', days: number | null): NewSuppression {
  return { id: newId('sup'), mailServiceId: recipient.mailServiceId, address: recipient.address, addressKey: recipient.addressKey, reason, sourceMessageId: messageId, days };
}

async function suppress(tx: Tx, wanted: readonly NewSuppression[]): Promise<void> {
  if (wanted.length === 0) return;
  const byAddress = new Map(wanted.map((one) => [`${one.mailServiceId} ${one.addressKey}`, one]));
  for (const { id, mailServiceId, address, reason } of await insertSuppressions(tx, [...byAddress.values()])) {
    await recordNotice(tx, { mailServiceId, type: 'suppression.created', recipient: address, facts: { suppressionId: id, reason } });
  }
}
