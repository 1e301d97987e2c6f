import * as mail from '../../src/mail/state';
import { withDatabase } from '../support/database';

const migrated = withDatabase();

/** CHECKs that name the values of a column, and the list of state.ts that each must equal. */
const lists: Readonly<Record<string, readonly string[]>> = {
  'mail_service.status': mail.serviceStatuses,
  'mail_service.suspended_reason': mail.suspendedReasons,
  'mail_domain.status': mail.domainStatuses,
  'mail_domain.failure_reason': mail.domainFailureReasons,
  'mail_domain_key.state': mail.domainKeyStates,
  'mail_domain_record.purpose': mail.recordPurposes,
  'mail_domain_record.status': mail.recordStatuses,
  'mail_message.mode': mail.keyModes,
  'mail_message.transport': mail.transportNames,
  'mail_message.status': mail.recipientStatuses,
  'mail_message.status_reason': mail.statusReasons,
  'mail_recipient.status': mail.recipientStatuses,
  'mail_recipient.status_reason': mail.statusReasons,
  'mail_recipient.bounce_class': mail.bounceClasses,
  'mail_event.type': mail.eventTypes,
  'mail_suppression.reason': mail.suppressionReasons,
  'mail_webhook.status': mail.webhookStatuses,
  'mail_webhook.disabled_reason': mail.webhookDisabledReasons,
  'mail_webhook_delivery.state': mail.deliveryStates,
};

test('the CHECK of every status column of mail is the list of state.ts', async () => {
  const { rows } = await migrated.database.pool.query<{ column: string; definition: string }>(`
    select c.relname || '.' || a.attname as column, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = k.conkey[1]
    where k.contype = 'c' and cardinality(k.conkey) = 1 and not c.relispartition and c.relname like 'mail\\_%'`);
  const checked = Object.fromEntries(rows.filter(({ definition }) => definition.includes('ANY (ARRAY['))
    .map(({ column, definition }) => [column, [...definition.matchAll(/'([^']+)'::text/g)].map(([, value]) => value)]));
  expect(Object.keys(lists).filter((column) => !checked[column])).toEqual([]);
  for (const [column, values] of Object.entries(lists)) expect({ column, values: checked[column] }).toEqual({ column, values });
});
